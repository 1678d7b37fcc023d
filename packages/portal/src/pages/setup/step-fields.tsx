import { CopyField } from '../../ui/copy.tsx'
import { TextField } from '../../ui/field.tsx'
import { PasswordField } from '../../ui/password-field.tsx'
import { Loaded } from '../../ui/state.tsx'
import { type SetupForm, errorOf } from './answers.ts'
import styles from './setup.module.css'
import { TimezoneField } from './timezone-field.tsx'
import type { Setup } from './use-setup.ts'

/** What each step says and asks. */

type StepProps = { setup: Setup }

/** What binds a field to its answer. */
const bound = ({ setup: { answers, answer } }: StepProps, name: keyof SetupForm) => ({
  name,
  value: answers[name],
  check: errorOf[name],
  onChange: (value: string) => answer({ [name]: value }),
})

export const WelcomeStep = (props: StepProps) => (
  <>
    <div className={styles['text']}>
      <p>
        In a few minutes the platform has a name, an address and an administrator. You can stop at any time: what you
        have entered is there when you come back, except for the password and the token.
      </p>
      <p>At the end you need the one-time token, which only who runs the platform can read. Get it with:</p>
    </div>
    <TokenHint {...props} />
  </>
)

export const PlatformStep = (props: StepProps) => (
  <>
    <TextField
      {...bound(props, 'platformName')}
      label="Name of the platform"
      hint="Shown at the top of every page and at the sign-in. It is the name of your organisation too."
      placeholder="Acme Platform"
      maxLength={100}
      autoComplete="organization"
    />
    <TimezoneField {...bound(props, 'timezone')} />
  </>
)

export const NetworkStep = (props: StepProps) => (
  <TextField
    {...bound(props, 'publicUrl')}
    label="Public address"
    hint={
      <>
        The https address at which people reach this portal; identity providers lead back to it.
        {location.protocol !== 'https:' && ` You are at ${location.origin} now, which goes on working on this machine.`}
      </>
    }
    placeholder="https://platform.example.com"
    inputMode="url"
    maxLength={500}
    autoComplete="url"
    spellCheck={false}
  />
)

export const AdministratorStep = (props: StepProps) => (
  <>
    {props.setup.isSentBack && props.setup.answers.adminUsername !== '' && (
      <p className={styles['note']} role="status">
        The password is not kept when the page is left. Enter it again to go on where you were.
      </p>
    )}
    <TextField
      {...bound(props, 'adminUsername')}
      label="User name"
      autoComplete="username"
      autoCapitalize="none"
      spellCheck={false}
      maxLength={64}
    />
    <TextField {...bound(props, 'adminEmail')} label="E-mail" inputMode="email" autoComplete="email" maxLength={254} />
    <PasswordField
      {...bound(props, 'adminPassword')}
      label="Password"
      hint="At least 8 characters; a few words are easier to remember than signs."
      autoComplete="new-password"
      maxLength={1024}
    />
    <PasswordField
      name="again"
      label="Password, once more"
      value={props.setup.again}
      onChange={props.setup.setAgain}
      check={(again, { adminPassword }) => (again === adminPassword ? undefined : 'The two are not the same.')}
      autoComplete="new-password"
      maxLength={1024}
    />
  </>
)

export const TokenStep = (props: StepProps) => (
  <>
    <p className={styles['text']}>It proves that you run this platform. Get it with:</p>
    <TokenHint {...props} />
    <PasswordField
      {...bound(props, 'initialAdminToken')}
      label="Token"
      hint="It lives 24 hours and works once; an attempt that fails does not use it up."
      autoComplete="off"
      maxLength={200}
      isMono
    />
  </>
)

const TokenHint = ({ setup: { hint } }: StepProps) => (
  <Loaded query={hint} what="how to get the token">
    {(text) => <CopyField label="How to get the token" text={text} />}
  </Loaded>
)
