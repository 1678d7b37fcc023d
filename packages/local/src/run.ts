import { join } from 'node:path'
import { setupHint } from './banner.ts'
import type { PlatformOptions } from './platform.ts'
import { InvalidSettings, parseSettings, type Settings } from './settings.ts'
import { stopOnSignals } from './signals.ts'
import { StartError } from './start-error.ts'

const print = (line: string) => process.stdout.write(`${line}\n`)

function fail(error: unknown): never {
  const isExpected = error instanceof StartError || error instanceof InvalidSettings
  console.error(isExpected ? error.message : error)
  process.exit(error instanceof InvalidSettings ? 2 : 1)
}

function readSettings(): Settings {
  try {
    return parseSettings(process.env)
  } catch (error) {
    return fail(error)
  }
}

async function start(options: PlatformOptions): Promise<void> {
  const settings = readSettings()
  for (const name of settings.ignored) console.warn(`${name} is unknown and has no effect.`)
  print(`Starting the platform. Its data is in ${settings.dataDir}`)
  // These modules read the settings on import, so they are imported after validation.
  if (settings.log === 'file' || (settings.log === undefined && process.stdout.isTTY)) {
    const logFile = join(settings.dataDir, 'logs/platform.log')
    print(`Its log is in ${logFile} (PLAT_LOG=stdout prints it here).`)
    const { logToFile } = await import('./log-file.ts')
    logToFile(logFile)
  }
  const { startPlatform } = await import('./platform.ts')
  const onProgress = (step: string) => print(`  ${step}: ready after ${Math.round(performance.now())} ms`)
  const starting = startPlatform(settings, { onProgress, onDeath: fail, ...options })
  stopOnSignals(async () => (await starting).stop())
  const platform = await starting
  print(await setupHint(platform.url))
  print(`Platform ready at ${platform.url}`)
}

export async function run(options: PlatformOptions = {}): Promise<void> {
  // By default, Node opens its inspector on this signal, so any process of the same user could run code in this one.
  process.on('SIGUSR1', () => undefined)
  // A closed output must not end the platform.
  process.stdout.on('error', () => undefined)
  process.stderr.on('error', () => undefined)
  await start(options).catch(fail)
}
