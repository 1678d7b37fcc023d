import { fold } from '../db/keys.ts'
import { validationFailedError } from '../error.ts'

interface NewPassword {
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
  throw validationFailedError([{ in: 'body', path: `/${field}`, code: 'weak_password', message }])
}

/** Removes differences in case, spaces, invisible characters and compatibility forms, such as full-width letters. */
const simplify = (text: string): string =>
  fold(text.normalize('NFKC')).replace(/[\s\p{Cc}\p{Default_Ignorable_Code_Point}]+/gu, '')

async function problemOf(simplified: string, { username, platformName }: Omit<NewPassword, 'field' | 'password'>) {
  if (new Set(simplified).size < 2) return 'must not repeat one character or consist of spaces'
  if (simplified === simplify(username)) return 'must not be the user name'
  if (typeof platformName === 'string' && simplified === simplify(platformName))
    return 'must not be the name of the platform'
  return (await isCommon(simplified)) ? 'is one of the most common passwords, which attackers try first' : undefined
}

/** The list of common passwords is loaded on demand, because most requests do not set a password. */
async function isCommon(simplified: string): Promise<boolean> {
  const { default: passwords } = await import('@zxcvbn-ts/language-common/src/passwords.json', {
    with: { type: 'json' },
  })
  return passwords.includes(simplified)
}
