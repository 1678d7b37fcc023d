import { constants } from 'node:os'
import { check } from './check.ts'
import { ServerClock } from './clock.ts'
import { loadOrEnroll } from './load-or-enroll.ts'
import { exitCodes, FatalError } from './exit-codes.ts'
import { helpText, versionText } from './help.ts'
import { explainStorageError, prepareState } from './storage.ts'
import { lockState } from './lock.ts'
import { messageOf, info, warn } from './log.ts'
import { type Options, parseOptions } from './options.ts'
import { isolatesScripts, Relay } from './relay.ts'
import { install, uninstall } from './service/install.ts'
import { printStatus } from './service/status.ts'
import { followSupervisor, isSupervised, supervise } from './update/supervisor.ts'

const stopLimitMs = 9500

// The first SIGTERM or SIGINT stops the relay in an orderly way; the second one ends the program immediately.
function createStopSignal(): AbortSignal {
  const stop = new AbortController()
  const onSignal = (signal: NodeJS.Signals) => {
    if (stop.signal.aborted) process.exit(128 + constants.signals[signal])
    info(`${signal}: stopping. Running scripts are ended and reported as interrupted.`)
    setTimeout(() => process.exit(exitCodes.stopped), stopLimitMs).unref()
    stop.abort(signal)
  }
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal)
  return stop.signal
}

async function runRelay(options: Options, signal: AbortSignal): Promise<number> {
  const clock = new ServerClock()
  let unlock: (() => void) | undefined
  try {
    unlock = lockState(options.stateFolder)
    const identity = await loadOrEnroll(options, clock, signal)
    info(`Scripts run on ${identity.nodes.map(({ config }) => config.name).join(', ')}; Ctrl-C stops the relay.`)
    if (!isolatesScripts(identity, options.runAs)) {
      warn('Scripts on this machine run as the user of the relay and can read its key. Use --run-as, as root.')
    }
    const isReplaced = await new Relay(identity, { ...options, clock }).run(signal)
    return isReplaced ? exitCodes.replaced : exitCodes.stopped
  } catch (error) {
    throw explainStorageError(options.stateFolder, error)
  } finally {
    unlock?.()
  }
}

function start(options: Options, signal: AbortSignal): Promise<number> {
  prepareState(options.stateFolder)
  followSupervisor()
  const run = () => runRelay(options, signal)
  return isSupervised ? run() : supervise(options.stateFolder, run, signal)
}

async function main(): Promise<number> {
  const signal = createStopSignal()
  try {
    const options = parseOptions(process.argv.slice(2), process.env)
    if (options === 'help') process.stdout.write(helpText)
    else if (options === 'version') process.stdout.write(`${versionText}\n`)
    else if (options.command === 'install') install(options)
    else if (options.command === 'uninstall') uninstall(options)
    else if (options.command === 'status') return printStatus(options)
    else if (options.check) return await check(options)
    else return await start(options, signal)
    return exitCodes.stopped
  } catch (error) {
    if (signal.aborted && !(error instanceof FatalError)) return exitCodes.stopped
    warn(error instanceof FatalError ? error.message : `Unexpected error: ${messageOf(error)}`)
    return error instanceof FatalError ? error.exitCode : exitCodes.failed
  }
}

// The relay must keep running if the reader of its output closes the pipe.
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})
process.exit(await main())
