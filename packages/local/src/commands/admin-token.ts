/** `npm run -s admin-token`: prints only the initial admin token of the running platform. */
import { readAdminToken } from '../admin-token.ts'
import { parseCommandLine } from '../command-line.ts'
import { findRunningPlatform } from '../running-platform.ts'
import type { RuntimeFile } from '../runtime-file.ts'

async function findPlatformInSetup(): Promise<RuntimeFile> {
  const runtime = await findRunningPlatform(process.env)
  const response = await fetch(`${runtime.apiUrl}/api/v1/setup/status`)
  if (response.status === 403) throw new Error('Setup is complete: there is no initial admin token.')
  if (!response.ok) throw new Error(`The platform at ${runtime.apiUrl} is not ready: it returned ${response.status}.`)
  return runtime
}

parseCommandLine(
  `npm run -s admin-token

Prints the initial admin token of the running platform, which authorises the setup.`,
  {},
)
try {
  console.log(await readAdminToken(await findPlatformInSetup()))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
