import { TextField } from '../../ui/field.tsx'
import { PasswordField } from '../../ui/password-field.tsx'

const shortest = 8
const tooShort = 'Enter at least 8 characters.'

export const NameField = () => (
  <TextField
    name="username"
    label="User name"
    hint="Used to sign in. Unique on the platform."
    maxLength={64}
    autoComplete="off"
    autoCapitalize="none"
    spellCheck={false}
    required
  />
)

export const EmailField = ({ email }: { email?: string }) => (
  <TextField
    name="email"
    label="E-mail"
    defaultValue={email}
    inputMode="email"
    maxLength={254}
    autoComplete="off"
    required
  />
)

export const NewPasswordField = () => (
  <PasswordField
    name="password"
    label="Password"
    hint="At least 8 characters. The user can change it under Account."
    check={(password) => (password.length < shortest ? tooShort : undefined)}
    maxLength={1024}
    autoComplete="new-password"
  />
)

export const ResetPasswordField = () => (
  <PasswordField
    name="password"
    label="New password"
    isOptional
    hint="Ends all sessions of the user and revokes the user’s API tokens."
    check={(password) => (password !== '' && password.length < shortest ? tooShort : undefined)}
    maxLength={1024}
    autoComplete="new-password"
  />
)
