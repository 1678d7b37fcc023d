import { CliError } from '../exit.ts'
import { askSecret, canAsk, readInput } from '../print/ask.ts'

/** The password of somebody who signs in: from standard input, PLAT_PASSWORD, or the person. */
export const ownPassword = (isFromInput: true | undefined): Promise<string> =>
  passwordFrom(isFromInput, 'PLAT_PASSWORD', () => askSecret('Password: '))

/** A password for somebody else; a person types it twice. */
export const newPassword = (isFromInput: true | undefined): Promise<string> =>
  passwordFrom(isFromInput, 'PLAT_NEW_PASSWORD', async () => {
    const password = await askSecret('New password: ')
    if ((await askSecret('Once more: ')) !== password) throw new CliError('usage', 'These are two different passwords.')
    return password
  })

async function passwordFrom(
  isFromInput: true | undefined,
  variable: string,
  asked: () => Promise<string>,
): Promise<string> {
  if (isFromInput) return (await readInput()).replace(/\r?\n$/, '')
  const password = process.env[variable]
  if (password) return password
  if (!canAsk()) throw new CliError('usage', `Give the password with --password-stdin or in ${variable}.`)
  return asked()
}
