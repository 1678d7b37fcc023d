import { CliError } from '../exit.ts'
import { askSecret, canAsk, readInput } from '../print/ask.ts'

/** Reads the password for a sign-in from standard input, PLAT_PASSWORD or a prompt. */
export const ownPassword = (isFromInput: true | undefined): Promise<string> =>
  passwordFrom(isFromInput, 'PLAT_PASSWORD', () => askSecret('Password: '))

/** Reads the password of another user from standard input, PLAT_NEW_PASSWORD or a prompt that asks twice. */
export const newPassword = (isFromInput: true | undefined): Promise<string> =>
  passwordFrom(isFromInput, 'PLAT_NEW_PASSWORD', async () => {
    const password = await askSecret('New password: ')
    if ((await askSecret('Repeat password: ')) !== password)
      throw new CliError('usage', 'The passwords do not match. Run the command again.')
    return password
  })

async function passwordFrom(
  isFromInput: true | undefined,
  variable: string,
  prompt: () => Promise<string>,
): Promise<string> {
  if (isFromInput) return (await readInput()).replace(/\r?\n$/, '')
  const password = process.env[variable]
  if (password) return password
  if (!canAsk()) throw new CliError('usage', `Provide the password with --password-stdin or in ${variable}.`)
  return prompt()
}
