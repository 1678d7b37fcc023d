/** `npm start`: the whole platform in one process. */
import { InvalidSettings, parseSettings, type Settings } from './settings.ts'
import { stopOnSignals } from './signals.ts'
import { StartError } from './start-error.ts'
import { banner } from './banner.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

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

async function run(): Promise<void> {
  const settings = readSettings()
  for (const name of settings.ignored) console.warn(`${name} means nothing to npm start: it has no effect here.`)
  // What it is made of reads its settings as it is loaded.
  const { startPlatform } = await import('./platform.ts')
  say(`Starting the platform. Its data are in ${settings.dataDir}`)
  const onProgress = (step: string) => say(`  ${step}: ready after ${Math.round(performance.now())} ms`)
  const starting = startPlatform(settings, { onProgress, onDeath: fail })
  stopOnSignals(async () => (await starting).stop())
  const platform = await starting
  say(`Platform ready at ${platform.url}`)
  for (const line of await banner(platform.url)) say(line)
}

// Whoever read the output may go; the platform stays.
process.stdout.on('error', () => undefined)
process.stderr.on('error', () => undefined)
await run().catch(fail)
