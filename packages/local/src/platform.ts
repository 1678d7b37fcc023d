import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { routes } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { buildAssets, pinAssets } from './assets.ts'
import { awsEnvironment, type StandIns } from './emulators/http/environment.ts'
import { claimDataFolder } from './data-folder.ts'
import { functionEnvironment, moduleEnvironment, type EnvironmentContext } from './function-environment.ts'
import { createLongPolls } from './gateway/long-polls.ts'
import { createRouter, type GatewayRoute } from './gateway/routes.ts'
import { listen } from './gateway/server.ts'
import { listenForNotifications } from './gateway/notify.ts'
import { type Log, logToStandardError } from './log.ts'
import { startEmbeddedModules } from './embedded-modules.ts'
import { startMetrics } from './metrics/start.ts'
import { type ModuleHost, startModuleHost } from './modules/host.ts'
import { provision } from './provision.ts'
import type { EmbeddedRegistry } from './registry/embedded.ts'
import { writerName } from './registry/writer.ts'
import { releaseEnvironment } from './release-settings.ts'
import { startFunctions, type UpdateHost } from './releases/start.ts'
import { removeRuntimeFile, writeRuntimeFile } from './runtime-file.ts'
import type { Settings } from './settings.ts'
import { startEmulators } from './emulators/start.ts'
import { explainListenError, StartError } from './start-error.ts'
import { type Functions, startWork } from './events/start.ts'

/** A platform that serves. */
export interface Platform {
  /** Where the API answers. */
  url: string
  /** Where functions ring for held requests. */
  wakeUrl: string
  /** Where functions ask for updates of themselves. */
  updateHost: UpdateHost
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
/** Modules then have ten seconds of their own. */
const modulesStayMs = 5000

const pause = (ms: number): Promise<void> => delay(ms, undefined, { ref: false })

const gatewayRoutes: GatewayRoute[] = [
  ...routes.map(({ function: functionName, endpoint: { method, path } }) => ({ functionName, method, path })),
  ...modulePaths.paths.map((path) => ({ functionName: modulePaths.function, method: 'ANY', path })),
]

/** Starts the whole platform in this process. Rejects with what stands in the way, and then leaves nothing running. */
export async function startPlatform(settings: Settings, observer: Observer = {}): Promise<Platform> {
  const { log = logToStandardError, onProgress = () => undefined, onDeath = () => undefined } = observer
  await using parts = new AsyncDisposableStack()
  parts.use(await claimDataFolder(settings.dataDir))
  const gateway = await listen(settings.host, settings.port).catch(explainListenError(settings))
  parts.defer(() => gateway.drain(0))

  const onOutdated = (file: string, error: unknown) =>
    log('a file cannot be built: an older one serves', { file, error })
  const assetsDir = join(settings.dataDir, 'handed-out')
  const assets = buildAssets(settings.assetsDir, { onOutdated }).then(() => pinAssets(settings.assetsDir, assetsDir))
  const supply = await startEmbeddedModules(settings, assets, log)
  parts.defer(supply.close)
  const origin = { registryHost: supply.registry.host, ownKey: supply.ownKey }
  const hosting = startHost(settings, moduleEnvironment(settings, origin), log)
  parts.defer(async () => (await hosting.catch(() => undefined))?.close())
  const standIns = await startEmulators(settings.dataDir, onDeath)
  parts.defer(standIns.close)
  const queues = await provision(standIns, settings.functionEnvironment['PLAT_TABLE'] ?? '')
  onProgress('store, queues and secrets')

  const holding = createLongPolls()
  const wake = await listenForNotifications(holding.ring)
  parts.defer(wake.close)
  const host = await hosting
  host.provide(awsEnvironment(standIns))
  const releases = await releaseEnvironment(settings, origin.registryHost)
  const surroundings = {
    apiUrl: gateway.url,
    wakeUrl: wake.url,
    assetsDir,
    standIns,
    queues,
    host,
    releases,
    ...origin,
  }
  const metrics = startMetrics(settings, standIns, holding)
  const environmentFor = (updateHost: UpdateHost) => functionEnvironment(settings, surroundings, updateHost)
  const running = await startFunctions(settings, environmentFor, log)
  parts.defer(running.close)
  const functions = { ...running, invoke: metrics.watched(running.invoke) }
  await assets
  onProgress('portal')
  await functions.invoke('bootstrap', {})
  onProgress('functions')

  const isCatalogNew = (await supply.isNews) && (await scanCatalog(functions, log))
  gateway.open({
    route: createRouter(gatewayRoutes, fallback.function),
    invoke: functions.invoke,
    holding,
    log,
    metrics,
  })
  const stopWork = startWork(settings, { standIns, queues, isCatalogNew }, functions, log)
  parts.defer(async () => {
    holding.releaseAll()
    // A batch or a sweep that takes longer than the limit comes again after the next start.
    const drained = Promise.all([gateway.drain(drainLimitMs), stopWork()])
    // Modules are there for the requests that are under way, but end in time as well.
    const closed = Promise.race([drained, pause(modulesStayMs)]).then(host.close)
    await Promise.all([Promise.race([drained, pause(drainLimitMs)]), closed])
  })
  await announce(settings, surroundings, supply.registry)
  parts.defer(() => removeRuntimeFile(settings.dataDir))
  return handOver(parts.move(), surroundings, running.host)
}

/** Starts what runs modules. It asks registries as the functions do, with the same settings. */
const startHost = (
  { dataDir, moduleIsolation: mode, functionEnvironment: settings }: Settings,
  modules: Record<string, string>,
  log: Log,
): Promise<ModuleHost> =>
  startModuleHost({ dataDir, mode, environment: { ...settings, ...modules }, log }).catch((cause: Error) => {
    throw new StartError(`Modules cannot be run: ${cause.message}`, { cause })
  })

/** Looks at the sources of modules, so that the catalog shows from the beginning what the platform brings along. */
async function scanCatalog({ invoke, names }: Functions, log: Log): Promise<boolean> {
  if (!names.includes('schedule/catalog')) return false
  try {
    await invoke('schedule/catalog', {})
    return true
  } catch (error) {
    log('the catalog could not be made', { error })
    return false
  }
}

/** Tells programs of the same user where the platform is. */
const announce = (
  { dataDir, functionEnvironment: names }: Settings,
  { apiUrl, standIns }: EnvironmentContext,
  { host, password }: EmbeddedRegistry,
) =>
  writeRuntimeFile(dataDir, {
    processId: process.pid,
    apiUrl,
    secretsUrl: standIns.secretsUrl,
    dynamoDbUrl: standIns.dynamoDbUrl,
    accessKeyId: standIns.accessKeyId,
    table: names['PLAT_TABLE'] ?? '',
    adminTokenSecret: names['PLAT_SECRET_ADMIN_TOKEN'] ?? '',
    signingKeysSecret: names['PLAT_SECRET_SIGNING_KEYS'],
    registry: { host, username: writerName, password },
  })

function handOver(
  parts: AsyncDisposableStack,
  { apiUrl: url, wakeUrl, standIns }: EnvironmentContext,
  updateHost: UpdateHost,
): Platform {
  let stopped: Promise<void> | undefined
  return { url, wakeUrl, updateHost, standIns, stop: () => (stopped ??= parts.disposeAsync()) }
}
