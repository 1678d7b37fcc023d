/** `npm run -s admin-token`: prints only the initial admin token of the running platform. */
import { readAdminToken } from '../admin-token.ts'
import { readRuntimeFile, type RuntimeFile } from '../runtime-file.ts'
import { parseSettings } from '../settings.ts'

async function findPlatformInSetup(): Promise<RuntimeFile> {
  const { dataDir } = parseSettings(process.env)
  const runtime = await readRuntimeFile(dataDir).catch(() => undefined)
  const response = runtime && (await fetch(`${runtime.apiUrl}/api/v1/setup/status`).catch(() => undefined))
  if (runtime === undefined || response === undefined) {
    throw new Error(`No platform runs on the data in ${dataDir}. Start it with: npm start`)
  }
  if (response.status === 403) throw new Error('Setup is complete: there is no initial admin token.')
  if (!response.ok) throw new Error(`The platform at ${runtime.apiUrl} is not ready: it returned ${response.status}.`)
  return runtime
}

try {
  console.log(await readAdminToken(await findPlatformInSetup()))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
