import { CopyField } from '../../ui/copy.tsx'
import { TextField } from '../../ui/field.tsx'
import { PasswordField } from '../../ui/password-field.tsx'
import { Loaded } from '../../ui/state.tsx'
import { type SetupForm, errorOf } from './answers.ts'
import styles from './setup.module.css'
import { TimezoneField } from './timezone-field.tsx'
import type { Setup } from './use-setup.ts'

type StepProps = { setup: Setup }

/** Binds a field to its value. */
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
        Set the name, address and administrator of the platform. Your entries are kept if you leave, except for the
        password and the token.
      </p>
      <p>You need a one-time token that only the platform’s operator can read. Get it with:</p>
    </div>
    <TokenHint {...props} />
  </>
)

export const PlatformStep = (props: StepProps) => (
  <>
    <TextField
      {...bound(props, 'platformName')}
      label="Platform name"
      hint="Shown on every page and at sign-in. Also the name of your organisation."
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
        The https address of this portal, also used by identity providers.
        {location.protocol !== 'https:' && ` ${location.origin} keeps working on this machine.`}
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
        The password is not kept when you leave the page. Enter it again to continue.
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
      hint="At least 8 characters."
      autoComplete="new-password"
      maxLength={1024}
    />
    <PasswordField
      name="again"
      label="Confirm password"
      value={props.setup.again}
      onChange={props.setup.setAgain}
      check={(again, { adminPassword }) => (again === adminPassword ? undefined : 'The passwords do not match.')}
      autoComplete="new-password"
      maxLength={1024}
    />
  </>
)

export const TokenStep = (props: StepProps) => (
  <>
    <p className={styles['text']}>Proves that you operate this platform. Get it with:</p>
    <TokenHint {...props} />
    <PasswordField
      {...bound(props, 'initialAdminToken')}
      label="Token"
      hint="Valid for 24 hours and one use. Failed attempts do not use it up."
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
