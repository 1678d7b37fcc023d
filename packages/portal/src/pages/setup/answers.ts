import type { Schemas } from '../../api/client.ts'

/** What the wizard asks: the members of the request that completes setup. */
export type SetupForm = Schemas['SetupCompletion']

const usernamePattern = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$/
const emailPattern = /^[^\s@]+@[^\s@]+\.[^\s@]+$/

/** Whether a name is one of a time zone; offsets such as +01:00 are none. */
export function isTimezone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

function publicUrlProblem(text: string): string | undefined {
  const url = URL.parse(text.trim())
  if (url?.protocol !== 'https:') return 'Enter an address that begins with https://'
  return /[@?#]/.test(text) ? 'Enter the address alone: no user, no “?” and no “#”.' : undefined
}

const unless = (isFit: boolean, problem: string): string | undefined => (isFit ? undefined : problem)

/** What is wrong with an answer, as far as a browser can tell; the platform decides. */
export const errorOf: Record<keyof SetupForm, (value: string) => string | undefined> = {
  platformName: (name) => unless(name.trim() !== '' && name.trim().length <= 100, 'Enter a name of 1 to 100 letters.'),
  timezone: (name) => unless(isTimezone(name), 'Choose one of the list, such as Europe/Berlin.'),
  publicUrl: publicUrlProblem,
  adminUsername: (name) =>
    unless(
      usernamePattern.test(name.trim()),
      'Enter 1 to 64 letters, digits or . _ @ + - that begin with a letter or digit.',
    ),
  adminEmail: (email) => unless(emailPattern.test(email.trim()), 'Enter an e-mail address.'),
  adminPassword: (password) => unless(password.length >= 8, 'Enter at least 8 characters.'),
  initialAdminToken: (token) => unless(token.trim() !== '', 'Enter the token.'),
}

const kept = ['platformName', 'timezone', 'publicUrl', 'adminUsername', 'adminEmail'] as const

/** What may be remembered between visits: never a secret. */
export const withoutSecrets = (answers: SetupForm): Record<(typeof kept)[number], string> => {
  const { platformName, timezone, publicUrl, adminUsername, adminEmail } = answers
  return { platformName, timezone, publicUrl, adminUsername, adminEmail }
}

/** The answers that begin the wizard: what was remembered, else what the browser can tell. */
export function initialForm(remembered: Record<string, unknown>): SetupForm {
  const { origin, protocol } = location
  const blank: SetupForm = {
    platformName: '',
    timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    publicUrl: protocol === 'https:' ? origin : '',
    adminUsername: '',
    adminEmail: '',
    adminPassword: '',
    initialAdminToken: '',
  }
  return mergeValues(blank, Object.fromEntries(kept.map((name) => [name, remembered[name]])))
}

/** The answers with those that were given now. */
export function mergeValues(answers: SetupForm, given: Record<string, unknown>): SetupForm {
  const isAnswer = ([name, value]: [string, unknown]) => Object.hasOwn(answers, name) && typeof value === 'string'
  return { ...answers, ...Object.fromEntries(Object.entries(given).filter(isAnswer)) }
}

/** As they are sent: what surrounds a name, an address or the token by accident is no part of it. */
export function toRequest(answers: SetupForm): SetupForm {
  const trimmed = Object.entries(answers).map(([name, value]) => [name, value.trim()])
  return { ...mergeValues(answers, Object.fromEntries(trimmed)), adminPassword: answers.adminPassword }
}
