import { join } from 'node:path'
import { setupHint } from './banner.ts'
import { parseCommandLine } from './command-line.ts'
import type { PlatformOptions } from './platform.ts'
import { InvalidSettings, parseSettings, type Settings } from './settings.ts'
import { stopOnSignals } from './signals.ts'
import { StartError } from './start-error.ts'

const usage = `npm start [-- --demo]

Runs the platform on this machine. Ctrl-C stops it. Environment variables configure it: see docs/operations.md.

  --demo  runs a demo with sample data in a folder of its own; npm run demo:clean removes it`

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
  const { demo: isDemo } = parseCommandLine(usage, { options: { demo: { type: 'boolean', default: false } } }).values
  const environmentSettings = readSettings()
  for (const name of environmentSettings.ignored) console.warn(`The setting ${name} is unknown and has no effect.`)
  // These modules read the settings on import, so they are imported after validation.
  const demo = isDemo ? await (await import('./demo/run.ts')).prepareDemo(environmentSettings) : undefined
  const settings = demo?.settings ?? environmentSettings
  print(`Starting the ${isDemo ? 'demo' : 'platform'}. Its data is in ${settings.dataDir}`)
  if (settings.log === 'file' || (settings.log === undefined && process.stdout.isTTY)) {
    const logFile = join(settings.dataDir, 'logs/platform.log')
    print(`Its log is in ${logFile} (PLAT_LOG=stdout prints it here).`)
    const { logToFile } = await import('./log-file.ts')
    logToFile(logFile)
  }
  const { startPlatform } = await import('./platform.ts')
  const onProgress = (step: string) => print(`  ${step}: ready after ${Math.round(performance.now())} ms`)
  const startingPlatform = startPlatform(settings, { onProgress, onDeath: fail, ...demo?.options, ...options })
  stopOnSignals(async () => {
    const platform = await startingPlatform
    await demo?.stop()
    await platform.stop()
  })
  const { url } = await startingPlatform
  if (demo !== undefined) for (const line of await demo.open(url)) print(line)
  else print(`${await setupHint(url, settings.dataDir)}\nPlatform ready at ${url}`)
}

export async function run(options: PlatformOptions = {}): Promise<void> {
  // By default, Node opens its inspector on this signal, so any process of the same user could run code in this one.
  process.on('SIGUSR1', () => undefined)
  // A closed output must not end the platform.
  process.stdout.on('error', () => undefined)
  process.stderr.on('error', () => undefined)
  await start(options).catch(fail)
}
