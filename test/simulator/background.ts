/** The process in which a rehearsal runs. Whoever has started it hears of each step, and of how it went. */
import { mkdirSync, truncateSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '@platform/cli/exit'
import { logToStandardError as log } from '@platform/local/log'
import { stopOnSignals } from '@platform/local/signals'
import { buildFunctions } from '../../scripts/deploy/build.ts'
import { LaunchMessage, type IpcMessage } from './command/ipc-messages.ts'
import { removeLeftovers } from './leftovers.ts'
import { type Simulator, startSimulator } from './simulator.ts'
import { operatorSettings } from './settings.ts'
import { claimFolder, placesIn, writeState } from './state.ts'

const { folder, stage, port, functions } = LaunchMessage.parse(JSON.parse(process.argv[2] ?? ''))
const { log: logFile, work } = placesIn(folder)
/** Nobody waits for what has not begun by then. */
let isWanted = true

/** Settles when it is heard, or when nobody hears it any more. */
const tell = (news: IpcMessage): Promise<void> =>
  new Promise((resolve) => (process.connected ? process.send?.(news, () => resolve()) : resolve()))

function goOn(): void {
  if (!isWanted) throw new Error('The rehearsal was stopped before it was ready.')
}

function onStep(step: string): void {
  goOn()
  console.log(step)
  void tell({ step })
}

/** What CloudWatch takes for metrics is none of the log, which it would fill. */
function onOutput(functionName: string, text: string): void {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('{"_aws":'))
  for (const line of lines) console.log(`${functionName}: ${line}`)
}

async function start(): Promise<Simulator> {
  const claim = claimFolder(folder)
  if (claim === undefined) throw new Error(`Another rehearsal begins in ${folder} at this moment.`)
  removeLeftovers(folder)
  // However this ends, nothing stays that the next one would have to look for.
  process.on('exit', () => {
    removeLeftovers(folder)
    claim[Symbol.dispose]()
  })
  writeState(folder, { stage })
  truncateSync(logFile)
  mkdirSync(work)
  process.env['TMPDIR'] = work
  const functionsDir = join(work, 'functions')
  if (functions === undefined) onStep(`${await buildFunctions(functionsDir)} functions are built`)
  else await cp(functions, functionsDir, { recursive: true })
  const environment = await operatorSettings(process.env)
  const rehearsal = await startSimulator({ stage, port, environment, functionsDir, onOutput, log, onStep })
  goOn()
  const { url, cloud, initialAdminTokenSecret } = rehearsal
  const outboundAllow = environment['PLAT_OUTBOUND_ALLOW'] ?? ''
  const { secretsUrl, accessKeyId } = cloud
  writeState(folder, { stage, ready: { url, outboundAllow, secretsUrl, accessKeyId, initialAdminTokenSecret } })
  return rehearsal
}

/** Tells how it went. A failure ends the process, once it is told. */
async function run(): Promise<Simulator> {
  try {
    const rehearsal = await start()
    await tell({ isReady: true })
    return rehearsal
  } catch (error) {
    console.error(error)
    await tell({ failure: messageOf(error) })
    return process.exit(1)
  }
}

// Not before signals are heard: whoever finds its state may send one.
const running = Promise.resolve().then(run)
stopOnSignals(async () => {
  isWanted = false
  await (await running)[Symbol.asyncDispose]()
})
process.on('disconnect', () => {
  isWanted = false
})
