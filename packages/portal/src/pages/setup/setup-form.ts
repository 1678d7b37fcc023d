import type { Schemas } from '../../api/client.ts'
import { trialAddress } from './trial-address.ts'

/** Values of the wizard, which are the body of the completion request. */
export type SetupForm = Schemas['SetupCompletion']

const usernamePattern = /^(?=.{1,64}$)[\p{L}\p{N}][\p{L}\p{M}\p{N}._@+-]*$/u
const emailPattern = /^[^\s@]+@[^\s@]+\.[^\s@]+$/

/** Whether a name is a time zone. `Intl` also accepts offsets such as +01:00, which are rejected. */
export function isTimezone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

function publicUrlError(text: string): string | undefined {
  const url = URL.parse(text.trim())
  if (url?.protocol !== 'https:') return 'Enter an address that begins with https://'
  if (/[@?#]/.test(text)) return 'Enter the address without user, query or fragment.'
  return url.pathname === '/' ? undefined : 'Enter the address without a path. The portal is served at the root.'
}

const errorUnless = (isValid: boolean, message: string): string | undefined => (isValid ? undefined : message)

/** Checks values before the request is sent. The platform validates them again. */
export const errorOf: Record<keyof SetupForm, (value: string) => string | undefined> = {
  platformName: (name) => errorUnless(name.trim() !== '' && name.trim().length <= 100, 'Enter 1 to 100 characters.'),
  timezone: (name) => errorUnless(isTimezone(name), 'Select a time zone, such as Europe/Berlin.'),
  publicUrl: publicUrlError,
  adminUsername: (name) =>
    errorUnless(
      usernamePattern.test(name.trim().normalize('NFKC')),
      'Use 1 to 64 letters, digits or . _ @ + -, starting with a letter or digit.',
    ),
  adminEmail: (email) => errorUnless(emailPattern.test(email.trim()), 'Enter an e-mail address.'),
  adminPassword: (password) => errorUnless(password.length >= 8, 'Enter at least 8 characters.'),
  initialAdminToken: (token) => errorUnless(token.trim() !== '', 'Enter the token.'),
}

const storedFields = ['platformName', 'timezone', 'publicUrl', 'adminUsername', 'adminEmail'] as const

/** Returns the values that may be stored in a cookie, which are not secret. */
export const withoutSecrets = (form: SetupForm): Record<(typeof storedFields)[number], string> => {
  const { platformName, timezone, publicUrl, adminUsername, adminEmail } = form
  return { platformName, timezone, publicUrl, adminUsername, adminEmail }
}

/** Returns the initial values: stored values, or else values of the browser. */
export function initialForm(storedValues: Record<string, unknown>): SetupForm {
  const { origin, protocol } = location
  const blankForm: SetupForm = {
    platformName: '',
    timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    publicUrl: protocol === 'https:' ? origin : trialAddress,
    adminUsername: '',
    adminEmail: '',
    adminPassword: '',
    initialAdminToken: '',
  }
  return mergeValues(blankForm, Object.fromEntries(storedFields.map((name) => [name, storedValues[name]])))
}

export function mergeValues(form: SetupForm, values: Record<string, unknown>): SetupForm {
  const isFormValue = ([name, value]: [string, unknown]) => Object.hasOwn(form, name) && typeof value === 'string'
  return { ...form, ...Object.fromEntries(Object.entries(values).filter(isFormValue)) }
}

/** Trims all values except the password, which may contain spaces. */
export function toRequest(form: SetupForm): SetupForm {
  const trimmedEntries = Object.entries(form).map(([name, value]) => [name, value.trim()])
  return { ...mergeValues(form, Object.fromEntries(trimmedEntries)), adminPassword: form.adminPassword }
}
