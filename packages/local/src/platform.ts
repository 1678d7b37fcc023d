import { setTimeout as delay } from 'node:timers/promises'
import { routes } from '@platform/contract/index'
import { buildAssets } from './assets.ts'
import type { StandIns } from './aws-environment.ts'
import { startConsumers } from './consumers.ts'
import { claimDataFolder } from './data-folder.ts'
import { functionEnvironment, type Surroundings } from './function-environment.ts'
import { functionNames } from './function-files.ts'
import { type FunctionPool, startPool } from './functions/pool.ts'
import { createHolding } from './gateway/holding.ts'
import { createRouter } from './gateway/routes.ts'
import { listen } from './gateway/server.ts'
import { listenForRings } from './gateway/wake.ts'
import { type Log, logToStandardError } from './log.ts'
import { provision } from './provision.ts'
import { removeRuntimeFile, writeRuntimeFile } from './runtime-file.ts'
import { startSchedule } from './schedule.ts'
import type { Settings } from './settings.ts'
import { startStandIns } from './stand-ins.ts'
import { explainListenError } from './start-failure.ts'

/** A platform that serves. */
export interface Platform {
  /** Where the API answers. */
  url: string
  /** Where functions ring for held requests. */
  wakeUrl: string
  standIns: StandIns
  /** Ends it cleanly: what is under way is answered, what was answered is kept. */
  stop: () => Promise<void>
}

/** Who follows a platform from outside. */
export interface Observer {
  log?: Log
  /** Hears of each step of the start that is done. */
  onProgress?: (step: string) => void
  /** Hears that the store died: nothing can be served from then on. */
  onDeath?: (error: Error) => void
}

/** Leaves some of the 28 seconds that a stop may take. */
const drainLimitMs = 20_000

const gatewayRoutes = routes.map(({ function: functionName, endpoint: { method, path } }) => ({
  functionName,
  method,
  path,
}))

/** Starts the whole platform in this process. Rejects with what stands in the way, and then leaves nothing running. */
export async function startPlatform(settings: Settings, observer: Observer = {}): Promise<Platform> {
  const { log = logToStandardError, onProgress = () => undefined, onDeath = () => undefined } = observer
  await using parts = new AsyncDisposableStack()
  parts.use(await claimDataFolder(settings.dataDir))
  const gateway = await listen(settings.host, settings.port).catch(explainListenError(settings))
  parts.defer(() => gateway.drain(0))

  const standIns = await startStandIns(settings.dataDir, onDeath)
  parts.defer(standIns.close)
  const queues = await provision(standIns, settings.functionEnvironment['PLAT_TABLE'] ?? '')
  onProgress('store, queues and secrets')

  const holding = createHolding()
  const wake = await listenForRings(holding.ring)
  parts.defer(wake.close)
  const surroundings = { apiUrl: gateway.url, wakeUrl: wake.url, standIns, queues }
  const functions = await startFunctions(settings, surroundings, log)
  const { pool } = functions
  parts.defer(pool.close)
  await Promise.all([pool.warmUp(functions.names), buildAssets(settings.assetsDir)])
  await pool.invoke('bootstrap', {})
  onProgress('functions')

  gateway.open({ route: createRouter(gatewayRoutes, 'meta'), invoke: pool.invoke, holding, log })
  const stopWork = startWork(settings, surroundings, functions, log)
  parts.defer(async () => {
    holding.releaseAll()
    // A batch or a sweep that takes longer than the limit comes again after the next start.
    const drained = Promise.all([gateway.drain(drainLimitMs), stopWork()])
    await Promise.race([drained, delay(drainLimitMs, undefined, { ref: false })])
  })
  await announce(settings, surroundings)
  parts.defer(() => removeRuntimeFile(settings.dataDir))
  return handOver(parts.move(), surroundings)
}

interface Functions {
  pool: FunctionPool
  names: readonly string[]
}

async function startFunctions(settings: Settings, surroundings: Surroundings, log: Log): Promise<Functions> {
  const { functionThreads: threads, functionsDir, functionTimeoutMs: timeoutMs } = settings
  const names = await functionNames(functionsDir)
  const environment = functionEnvironment(settings, surroundings)
  return { pool: startPool({ threads, functionsDir, timeoutMs, environment, log }), names }
}

/** Starts what runs without a request: the consumers of the queues, and the sweep. */
function startWork(settings: Settings, { standIns, queues }: Surroundings, { pool, names }: Functions, log: Log) {
  const consumers = startConsumers({ standIns, queues, functionNames: names, pool, log })
  const sweep = startSchedule({
    name: 'sweep',
    intervalMs: settings.sweepIntervalSeconds * 1000,
    invoke: (event) => pool.invoke('schedule/sweep', event),
    log,
  })
  return async () => {
    await Promise.all([consumers.stop(), sweep.stop()])
  }
}

/** Tells programs of the same user where the platform is. */
const announce = ({ dataDir, functionEnvironment: names }: Settings, { apiUrl, standIns }: Surroundings) =>
  writeRuntimeFile(dataDir, {
    processId: process.pid,
    apiUrl,
    secretsUrl: standIns.secretsUrl,
    accessKeyId: standIns.accessKeyId,
    adminTokenSecret: names['PLAT_SECRET_ADMIN_TOKEN'] ?? '',
  })

function handOver(parts: AsyncDisposableStack, { apiUrl, wakeUrl, standIns }: Surroundings): Platform {
  let stopped: Promise<void> | undefined
  return { url: apiUrl, wakeUrl, standIns, stop: () => (stopped ??= parts.disposeAsync()) }
}
