/** `npm run simulate`: runs the deployment on this machine. */
import { relative } from 'node:path'
import { CliError } from '@platform/cli/exit'
import { type Options, parseOptions, usage } from './command/options.ts'
import { start } from './command/start.ts'
import { stop } from './command/stop.ts'
import { initialAdminToken } from './command/token.ts'
import { findSimulator, folderOf, placesIn } from './state.ts'

const say = (line: string): void => console.log(line)
const folder = folderOf(process.env)
const seconds = (): string => `${(performance.now() / 1000).toFixed(1)} s`

async function end(): Promise<boolean> {
  const running = findSimulator(folder)
  if (running !== undefined) say(`Stopping the simulator of ${running.stage} with process id ${running.pid} …`)
  const stopped = await stop(folder)
  if (stopped && 'left' in stopped) {
    say(`Removed what the killed simulator of ${stopped.left.stage} with process id ${stopped.left.pid} left behind.`)
  }
  return stopped !== undefined
}

async function begin({ stage, ...options }: Extract<Options, { action: 'start' }>): Promise<void> {
  await end()
  say(`Simulating stage ${stage} …`)
  await start({ folder, stage, ...options }, (step) => say(`  ${step}, after ${seconds()}`))
  say(`The platform is running on this machine after ${seconds()}:`)
  for (const [name, value] of outputs()) say(`  ${`${name}:`.padEnd(21)}${value}`)
}

const outputs = (): [name: string, value: string][] => [
  ['API', findSimulator(folder)?.ready?.url ?? 'it has ended'],
  ['initial admin token', 'npm run -s simulate -- --token'],
  ['log', shortened(placesIn(folder).log)],
  ['try it', 'npm run conformance'],
  ['end it', 'npm run simulate -- --stop'],
]

const shortened = (path: string): string => {
  const fromHere = relative('', path)
  return fromHere.startsWith('..') ? path : fromHere
}

async function run(options: Options): Promise<void> {
  if (options.action === 'help') say(usage)
  else if (options.action === 'token') say(await initialAdminToken(folder))
  else if (options.action === 'start') await begin(options)
  else say((await end()) ? 'Stopped. Only the log is left.' : 'No simulator is running.')
}

try {
  await run(parseOptions(process.argv.slice(2)))
} catch (error) {
  console.error(error instanceof CliError ? error.message : error)
  process.exitCode = error instanceof CliError ? error.exitCode : 1
}
