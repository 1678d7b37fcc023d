/** `npm run deploy:rehearsal`: the deployment, done on this machine. */
import { relative } from 'node:path'
import { CliError } from '@platform/cli/exit'
import { type Options, parseOptions, usage } from './command/options.ts'
import { start } from './command/start.ts'
import { stop } from './command/stop.ts'
import { initialAdminToken } from './command/token.ts'
import { findRehearsal, folderOf, placesIn } from './state.ts'

const say = (line: string): void => console.log(line)
const folder = folderOf(process.env)
const seconds = (): string => `${(performance.now() / 1000).toFixed(1)} s`

/** Tells what it ends. */
async function end(): Promise<boolean> {
  const running = findRehearsal(folder)
  if (running !== undefined) say(`The rehearsal of ${running.stage} with process id ${running.pid} runs: it is ended …`)
  const stopped = await stop(folder)
  if (stopped && 'left' in stopped) {
    say(
      `The rehearsal of ${stopped.left.stage} with process id ${stopped.left.pid} was killed: what it left is removed.`,
    )
  }
  return stopped !== undefined
}

async function begin({ stage, ...options }: Extract<Options, { action: 'start' }>): Promise<void> {
  await end()
  say(`The stage ${stage} is rehearsed …`)
  await start({ folder, stage, ...options }, (step) => say(`  ${step}, after ${seconds()}`))
  say(`The platform is deployed on this machine, after ${seconds()}:`)
  for (const [name, value] of outputs()) say(`  ${`${name}:`.padEnd(21)}${value}`)
}

const outputs = (): [name: string, value: string][] => [
  ['API', findRehearsal(folder)?.ready?.url ?? 'it has ended meanwhile'],
  ['initial admin token', 'npm run -s deploy:rehearsal -- --token'],
  ['log', shortened(placesIn(folder).log)],
  ['try it', 'npm run conformance'],
  ['end it', 'npm run deploy:rehearsal -- --stop'],
]

const shortened = (path: string): string => {
  const fromHere = relative('', path)
  return fromHere.startsWith('..') ? path : fromHere
}

async function run(options: Options): Promise<void> {
  if (options.action === 'help') say(usage)
  else if (options.action === 'token') say(await initialAdminToken(folder))
  else if (options.action === 'start') await begin(options)
  else say((await end()) ? 'Nothing of it is left but its log.' : 'No rehearsal runs.')
}

try {
  await run(parseOptions(process.argv.slice(2)))
} catch (error) {
  console.error(error instanceof CliError ? error.message : error)
  process.exitCode = error instanceof CliError ? error.exitCode : 1
}
