import { readRuntimeFile, type RuntimeFile } from './runtime-file.ts'
import { parseSettings } from './settings.ts'

/** Throws an error that names the next step if no platform runs on the data folder. */
export async function findRunningPlatform(environment: NodeJS.ProcessEnv): Promise<RuntimeFile> {
  const { dataDir } = parseSettings(environment)
  const runtime = await readRuntimeFile(dataDir).catch(() => undefined)
  const response = runtime && (await fetch(`${runtime.apiUrl}/health/live`).catch(() => undefined))
  if (runtime !== undefined && response !== undefined) return runtime
  const nextStep = 'Start it with: npm start. If it uses another folder, set PLAT_DATA_DIR.'
  throw new Error(`No platform runs on the data in ${dataDir}. ${nextStep}`)
}
