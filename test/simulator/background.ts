/**
 * The background process of the simulator. Reports its progress, and success or failure, to the command that started
 * it.
 */
import { mkdirSync, truncateSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '@platform/cli/exit'
import { logToStandardError as log } from '@platform/local/log'
import { stopOnSignals } from '@platform/local/signals'
import { stop } from 'esbuild'
import { writeFunctions } from '../../scripts/deploy/build.ts'
import { deployedFunctions } from '../support/build-cache.ts'
import { type IpcMessage, LaunchMessage } from './command/start.ts'
import { removeState } from './command/stop.ts'
import { operatorSettings } from './settings.ts'
import type { Simulator } from './simulator.ts'
import { claimFolder, placesIn, writeState } from './state.ts'

const { folder, stage, port, functions } = LaunchMessage.parse(JSON.parse(process.argv[2] ?? ''))
const { log: logFile, work } = placesIn(folder)
let isCancelled = false

const notifyParent = (message: IpcMessage): Promise<void> =>
  new Promise((resolve) => (process.connected ? process.send?.(message, () => resolve()) : resolve()))

function throwIfCancelled(): void {
  if (isCancelled) throw new Error('The simulator was stopped before it was ready.')
}

function onStep(step: string): void {
  throwIfCancelled()
  console.log(step)
  void notifyParent({ step })
}

/** Metric lines would fill the log. */
function onOutput(functionName: string, text: string): void {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('{"_aws":'))
  for (const line of lines) console.log(`${functionName}: ${line}`)
}

async function start(): Promise<Simulator> {
  const claim = claimFolder(folder)
  if (claim === undefined) throw new Error(`Another simulator is starting in ${folder}.`)
  removeState(folder)
  process.on('exit', () => {
    removeState(folder)
    claim[Symbol.dispose]()
  })
  writeState(folder, { stage })
  truncateSync(logFile)
  mkdirSync(work)
  process.env['TMPDIR'] = work
  const functionsDir = join(work, 'functions')
  if (functions === undefined) {
    const builtFunctions = await deployedFunctions()
    // Otherwise the esbuild service keeps its memory until this process ends.
    await stop()
    await writeFunctions(builtFunctions, functionsDir)
    onStep(`Built ${builtFunctions.size} functions`)
  } else await cp(functions, functionsDir, { recursive: true })
  const environment = await operatorSettings(process.env)
  // Imported only now, because the import fails if the settings are invalid.
  const { startSimulator } = await import('./simulator.ts')
  const simulator = await startSimulator({ stage, port, environment, functionsDir, onOutput, log, onStep })
  throwIfCancelled()
  const { url, cloud, initialAdminTokenSecret } = simulator
  const webhookAllow = environment['PLAT_WEBHOOK_ALLOW'] ?? ''
  const { secretsUrl, accessKeyId } = cloud
  writeState(folder, { stage, ready: { url, webhookAllow, secretsUrl, accessKeyId, initialAdminTokenSecret } })
  return simulator
}

async function run(): Promise<Simulator> {
  try {
    const simulator = await start()
    await notifyParent({ isReady: true })
    return simulator
  } catch (error) {
    console.error(error)
    await notifyParent({ failure: messageOf(error) })
    return process.exit(1)
  }
}

// Starts after the signal handlers are installed, because other commands find the state and may send a signal.
const runningSimulator = Promise.resolve().then(run)
stopOnSignals(async () => {
  isCancelled = true
  await (await runningSimulator)[Symbol.asyncDispose]()
})
process.on('disconnect', () => {
  isCancelled = true
})
