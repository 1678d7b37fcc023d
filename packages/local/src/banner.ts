import { SetupStatus } from '@platform/contract/setup'
import { shellCommand } from './shell-command.ts'

/** Returns the line to print before the address. */
export async function setupHint(apiUrl: string, dataDir: string): Promise<string> {
  const response = await fetch(`${apiUrl}/api/v1/setup/status`)
  const status = SetupStatus.safeParse(await response.json())
  if (!response.ok || !status.success || status.data.setupComplete) return 'Open this address in a browser to sign in:'
  const command = shellCommand('npm run -s admin-token', dataDir)
  return `Open this address to set it up. In another terminal, print the admin token: ${command}`
}
