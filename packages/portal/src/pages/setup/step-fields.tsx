import { useId } from 'react'
import { language } from '../../lib/language.ts'
import { CopyField } from '../../ui/copy.tsx'
import { type InputProps, PasswordField, TextField } from '../../ui/field.tsx'
import { Loaded } from '../../ui/state.tsx'
import { useNow } from '../../ui/time.tsx'
import { errorOf, isTimezone, type SetupForm } from './setup-form.ts'
import styles from './setup.module.css'
import { isTrialAddress } from './trial-address.ts'
import type { Setup } from './use-setup.ts'

type StepProps = { setup: Setup }

const fieldProps = ({ setup: { form, update } }: StepProps, name: keyof SetupForm) => ({
  name,
  value: form[name],
  check: errorOf[name],
  onChange: (value: string) => update({ [name]: value }),
})

export const WelcomeStep = (props: StepProps) => (
  <>
    <div className={styles['text']}>
      <p>
        Set the name, address and administrator of the platform. Your entries are saved if you leave, except for the
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
      {...fieldProps(props, 'platformName')}
      label="Platform name"
      hint="Shown on every page and at sign-in. Also the name of your organisation."
      placeholder="Acme Platform"
      maxLength={100}
      autoComplete="organization"
    />
    <TimezoneField {...fieldProps(props, 'timezone')} />
  </>
)

export const NetworkStep = (props: StepProps) => (
  <TextField
    {...fieldProps(props, 'publicUrl')}
    label="Public address"
    hint={
      <>
        The https address of this portal, to which identity providers redirect. You can change it later.
        {isTrialAddress(props.setup.form.publicUrl) &&
          ' https://localhost suffices for a trial without identity providers.'}
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
    {props.setup.isRedirected && props.setup.form.adminUsername !== '' && (
      <p className={styles['note']} role="status">
        The password is not saved when you leave the page. Enter it again to continue.
      </p>
    )}
    <TextField
      {...fieldProps(props, 'adminUsername')}
      label="User name"
      autoComplete="username"
      autoCapitalize="none"
      spellCheck={false}
      maxLength={64}
    />
    <TextField
      {...fieldProps(props, 'adminEmail')}
      label="E-mail"
      inputMode="email"
      autoComplete="email"
      maxLength={254}
    />
    <PasswordField
      {...fieldProps(props, 'adminPassword')}
      label="Password"
      hint="At least 8 characters. Common passwords are rejected."
      autoComplete="new-password"
      maxLength={1024}
    />
    <PasswordField
      name="again"
      label="Confirm password"
      value={props.setup.passwordConfirmation}
      onChange={props.setup.setPasswordConfirmation}
      check={(passwordConfirmation, { adminPassword }) =>
        passwordConfirmation === adminPassword ? undefined : 'The passwords do not match.'
      }
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
      {...fieldProps(props, 'initialAdminToken')}
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

// The lists of browsers do not include UTC.
const zones = ['UTC', ...Intl.supportedValuesOf('timeZone')]

// The list is searchable, because there are hundreds of time zones.
function TimezoneField({ value, ...rest }: Pick<InputProps, 'name' | 'check' | 'onChange'> & { value: string }) {
  const id = useId()
  const nowMs = useNow()
  const currentTime = isTimezone(value)
    ? new Intl.DateTimeFormat(language, { timeZone: value, timeStyle: 'short', dateStyle: 'medium' }).format(nowMs)
    : undefined
  return (
    <>
      <TextField
        {...rest}
        value={value}
        label="Time zone"
        hint={currentTime === undefined ? 'Search by city.' : `Current time: ${currentTime}`}
        list={id}
        autoComplete="off"
        spellCheck={false}
        // Selected text is replaced by typing; otherwise the list would show only matches of the current value.
        onFocus={(event) => event.currentTarget.select()}
      />
      <datalist id={id}>
        {zones.map((zone) => (
          <option key={zone} value={zone}>
            {zone}
          </option>
        ))}
      </datalist>
    </>
  )
}
