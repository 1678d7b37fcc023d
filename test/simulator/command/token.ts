import { CliError } from '@platform/cli/exit'
import { readSecret } from '../secret.ts'
import { findRehearsal } from '../state.ts'

/** The initial admin token of the rehearsal of a folder. Throws `Failure` where none runs, or where the setup is complete. */
export async function initialAdminToken(folder: string): Promise<string> {
  const { ready } = findRehearsal(folder) ?? {}
  if (ready === undefined)
    throw new CliError('refused', 'No rehearsal is ready. Begin one with: npm run deploy:rehearsal')
  const { status } = await fetch(`${ready.url}/api/v1/setup/status`)
  if (status === 403) throw new CliError('refused', 'Setup is complete: there is no initial admin token any more.')
  const token = await readSecret(ready, ready.initialAdminTokenSecret)
  if (token === undefined) throw new CliError('refused', 'The platform has not made an initial admin token.')
  return token
}
