/** `npm run simulate`: runs the deployment on this machine. */
import { relative } from 'node:path'
import { CliError } from '@platform/cli/exit'
import { type Options, parseOptions, usage } from './command/options.ts'
import { start } from './command/start.ts'
import { stop } from './command/stop.ts'
import { initialAdminToken } from './secret.ts'
import { findSimulator, folderOf, placesIn } from './state.ts'

const print = (line: string): void => console.log(line)
const folder = folderOf(process.env)
const duration = (): string => `${(performance.now() / 1000).toFixed(1)} s`

async function stopSimulator(): Promise<boolean> {
  const runningState = findSimulator(folder)
  if (runningState !== undefined)
    print(`Stopping the simulator of ${runningState.stage} with process id ${runningState.pid} …`)
  const stopResult = await stop(folder)
  if (stopResult?.wasKilled === true) {
    const { stage, pid } = stopResult.state
    print(`Removed the files and processes of the killed simulator of ${stage} with process id ${pid}.`)
  }
  return stopResult !== undefined
}

async function startSimulator({ stage, ...options }: Extract<Options, { action: 'start' }>): Promise<void> {
  await stopSimulator()
  print(`Simulating stage ${stage} …`)
  await start({ folder, stage, ...options }, (step) => print(`  ${step}, after ${duration()}`))
  print(`The platform is running on this machine after ${duration()}:`)
  for (const [name, value] of outputs()) print(`  ${`${name}:`.padEnd(21)}${value}`)
}

const outputs = (): [name: string, value: string][] => [
  ['API', findSimulator(folder)?.ready?.url ?? 'stopped'],
  ['initial admin token', 'npm run -s simulate -- --token'],
  ['log', relativePath(placesIn(folder).log)],
  ['test it', 'npm run conformance'],
  ['stop it', 'npm run simulate -- --stop'],
]

const relativePath = (path: string): string => {
  const relativePath = relative('', path)
  return relativePath.startsWith('..') ? path : relativePath
}

async function run(options: Options): Promise<void> {
  if (options.action === 'help') print(usage)
  else if (options.action === 'token') print(await initialAdminToken(folder))
  else if (options.action === 'start') await startSimulator(options)
  else print((await stopSimulator()) ? 'Stopped. Only the log remains.' : 'No simulator is running.')
}

try {
  await run(parseOptions(process.argv.slice(2)))
} catch (error) {
  console.error(error instanceof CliError ? error.message : error)
  process.exitCode = error instanceof CliError ? error.exitCode : 1
}
