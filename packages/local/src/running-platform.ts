import { readRuntimeFile, type RuntimeFile } from './runtime-file.ts'
import { parseSettings } from './settings.ts'

/** Finds the platform that runs on the data of the environment; throws with the next step if there is none. */
export async function findRunningPlatform(environment: NodeJS.ProcessEnv): Promise<RuntimeFile> {
  const { dataDir } = parseSettings(environment)
  const runtime = await readRuntimeFile(dataDir).catch(() => undefined)
  const response = runtime && (await fetch(`${runtime.apiUrl}/health/live`).catch(() => undefined))
  if (runtime !== undefined && response !== undefined) return runtime
  throw new Error(`No platform runs on the data in ${dataDir}. Start it with: npm start`)
}
