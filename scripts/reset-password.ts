/** `npm run reset-password -- USER`: sets a new password on the running platform of this machine or on a stage. */
import { exitWithUsage, parseCommandLine } from '@platform/local/command-line'
import { awsEnvironment } from '@platform/local/emulators/http/environment'
import { findRunningPlatform } from '@platform/local/running-platform'
import * as z from 'zod'
import { invokeBootstrap } from './invoke-bootstrap.ts'

const usage = `npm run reset-password -- USER [--stage NAME]

Sets a new random password for a local user and prints it. Ends the user's sessions and revokes the API tokens.

  --stage NAME  name of a deployment, reached with your AWS credentials and region; default: this machine`

const Reset = z.object({ username: z.string(), password: z.string() })
type Reset = z.infer<typeof Reset>

async function resetHere(username: string): Promise<Reset> {
  const { table, ...emulators } = await findRunningPlatform(process.env)
  Object.assign(process.env, awsEnvironment({ ...emulators, sqsUrl: '' }), { PLAT_TABLE: table })
  // Imported after the environment is set, because the module reads it on import.
  const { resetPassword } = await import('@platform/core/accounts/reset-password')
  return resetPassword(username)
}

async function resetOn(stage: string, username: string): Promise<Reset> {
  const reset = Reset.safeParse(await invokeBootstrap(stage, { resetPassword: username }))
  if (!reset.success) throw new Error('The function returned no password. Deploy this version of the platform.')
  return reset.data
}

const { values, positionals } = parseCommandLine(usage, {
  allowPositionals: true,
  options: { stage: { type: 'string' } },
})
const [username, ...excess] = positionals
if (username === undefined || excess.length > 0) exitWithUsage('Name one user.', usage)
const { stage } = values
try {
  const reset = await (stage === undefined ? resetHere(username) : resetOn(stage, username))
  console.log(`The new password of ${reset.username} is: ${reset.password}`)
  console.log('The sessions and API tokens of this user have ended. Sign in, and choose another password.')
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
