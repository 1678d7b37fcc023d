import { fold } from '../db/keys.ts'
import { validationFailed } from '../error.ts'

interface NewPassword {
  /** The request field that contains the password, for error details. */
  field: string
  password: string
  username: string
  platformName: unknown
}

/** Called only when a password is set, so that a stricter rule never prevents a sign-in. */
export async function checkNewPassword({ field, password, ...names }: NewPassword): Promise<void> {
  const problem = await problemOf(simplify(password), names)
  if (problem === undefined) return
  const message = `${problem}; choose another one, such as four random words`
  throw validationFailed([{ in: 'body', path: `/${field}`, code: 'weak_password', message }])
}

/** Ignores case, spaces, invisible characters and compatibility forms, such as full-width letters. */
const simplify = (text: string): string =>
  fold(text.normalize('NFKC')).replace(/[\s\p{Cc}\p{Default_Ignorable_Code_Point}]+/gu, '')

async function problemOf(simple: string, { username, platformName }: Omit<NewPassword, 'field' | 'password'>) {
  if (new Set(simple).size < 2) return 'must not repeat one character or consist of spaces'
  if (simple === simplify(username)) return 'must not be the user name'
  if (typeof platformName === 'string' && simple === simplify(platformName))
    return 'must not be the name of the platform'
  return (await isCommon(simple)) ? 'is one of the most common passwords, which attackers try first' : undefined
}

/** The 49,000 most common passwords are loaded on demand, because most requests set none. */
async function isCommon(simple: string): Promise<boolean> {
  const { default: passwords } = await import('@zxcvbn-ts/language-common/src/passwords.json', {
    with: { type: 'json' },
  })
  return passwords.includes(simple)
}
