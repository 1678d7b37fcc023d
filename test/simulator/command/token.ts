import { CliError } from '@platform/cli/exit'
import { readSecret } from '../secret.ts'
import { findSimulator } from '../state.ts'

/** The initial admin token. Throws `CliError` where no simulator runs or setup is complete. */
export async function initialAdminToken(folder: string): Promise<string> {
  const { ready } = findSimulator(folder) ?? {}
  if (ready === undefined) throw new CliError('refused', 'No simulator is ready. Start one with: npm run simulate')
  const { status } = await fetch(`${ready.url}/api/v1/setup/status`)
  if (status === 403) throw new CliError('refused', 'Setup is complete: there is no initial admin token.')
  const token = await readSecret(ready, ready.initialAdminTokenSecret)
  if (token === undefined) throw new CliError('refused', 'The platform has not created an initial admin token.')
  return token
}
