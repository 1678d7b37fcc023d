import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { routePaths } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { buildAssets, pinAssets, requireBuildTools } from './assets.ts'
import { awsEnvironment, type EmulatorAddresses } from './emulators/http/environment.ts'
import { claimDataFolder } from './data-folder.ts'
import { functionEnvironment, moduleEnvironment, type EnvironmentContext } from './function-environment.ts'
import { startChannel } from './channel.ts'
import type { Interceptor } from './gateway/exchange.ts'
import { createRouter, type GatewayRoute } from './gateway/routes.ts'
import { listen } from './gateway/server.ts'
import { type Log, logToStandardError } from './log.ts'
import { startEmbeddedModules } from './embedded-modules.ts'
import { startMetrics } from './metrics/start.ts'
import { type ModuleHost, startModuleHost } from './modules/host.ts'
import { provision } from './provision.ts'
import type { EmbeddedRegistry } from './registry/embedded.ts'
import { writerName } from './registry/writer.ts'
import { releaseEnvironment } from './release-settings.ts'
import { startFunctions, type UpdateSupervisor } from './releases/start.ts'
import { removeRuntimeFile, writeRuntimeFile } from './runtime-file.ts'
import type { Settings } from './settings.ts'
import { startEmulators } from './emulators/start.ts'
import { explainListenError, StartError } from './start-error.ts'
import { type Functions, startWork } from './events/start.ts'

export interface Platform {
  url: string
  /** Address that functions call to wake relays. */
  channelUrl: string
  /** Address that functions call to update the platform. */
  updateSupervisor: UpdateSupervisor
  emulators: EmulatorAddresses
  /** Waits up to 20 seconds for running requests and work. Keeps all acknowledged changes. */
  stop: () => Promise<void>
}

export interface PlatformOptions {
  log?: Log
  onClaim?: () => void
  onProgress?: (step: string) => void
  /** Called when the thread of the emulators has ended; the platform cannot serve after that. */
  onDeath?: (error: Error) => void
  /** Serves requests before the functions do. Returns undefined for other requests. */
  intercept?: Interceptor
  /** URL of a module that exports `EmulatorHooks`, for tests. */
  emulatorHooks?: string
}

/** Time limit for running requests and work when the platform stops. */
const drainLimitMs = 20_000
/**
 * When the platform stops, modules stay available until the running requests and work have ended, but at most this
 * time. They then have 35 seconds to stop.
 */
const moduleGraceMs = 3000

const pause = (ms: number): Promise<void> => delay(ms, undefined, { ref: false })

const gatewayRoutes: GatewayRoute[] = [
  ...routePaths.map(([path, functionName]) => ({ functionName, method: 'ANY', path })),
  ...modulePaths.paths.map((path) => ({ functionName: modulePaths.function, method: 'ANY', path })),
]

/** Runs the platform in this process. If it cannot start, rejects with the cause and leaves nothing running. */
export async function startPlatform(settings: Settings, options: PlatformOptions = {}): Promise<Platform> {
  const { log = logToStandardError, onProgress = () => undefined, onDeath = () => undefined } = options
  requireBuildTools()
  await using resources = new AsyncDisposableStack()
  resources.use(await claimDataFolder(settings.dataDir))
  options.onClaim?.()
  const gateway = await listen(settings.host, settings.port).catch(explainListenError(settings))
  resources.defer(() => gateway.drain(0))

  const onOutdated = (file: string, error: unknown) =>
    log('failed to rebuild an asset; the older one is used', { file, error })
  const assetsDir = join(settings.dataDir, 'assets')
  const assets = buildAssets(settings.assetsDir, { onOutdated }).then(() => pinAssets(settings.assetsDir, assetsDir))
  const embeddedModules = await startEmbeddedModules(settings, assets, log)
  resources.defer(embeddedModules.close)
  const origin = { registryHost: embeddedModules.registry.host, ownKey: embeddedModules.publicKey }
  const startingHost = startHost(settings, moduleEnvironment(settings, origin), log)
  resources.defer(async () => (await startingHost.catch(() => undefined))?.close())
  const emulators = await startEmulators(settings.dataDir, onDeath, options.emulatorHooks)
  resources.defer(emulators.close)
  const queues = await provision(emulators, settings.functionEnvironment['PLAT_TABLE'] ?? '')
  onProgress('store, queues and secrets')

  const channel = await startChannel(emulators.accessKeyId, log)
  resources.defer(channel.close)
  const host = await startingHost
  host.addEnvironment(awsEnvironment(emulators))
  const releases = await releaseEnvironment(settings, origin.registryHost)
  const context = {
    apiUrl: gateway.url,
    channelUrl: channel.url,
    assetsDir,
    emulators,
    queues,
    host,
    releases,
    ...origin,
  }
  const metrics = startMetrics(settings, emulators, channel)
  const environmentFor = (updateSupervisor: UpdateSupervisor) =>
    functionEnvironment(settings, context, updateSupervisor)
  const functionHost = await startFunctions(settings, environmentFor, emulators.connect, log)
  resources.defer(functionHost.close)
  const functions = { ...functionHost, invoke: metrics.withMetrics(functionHost.invoke) }
  channel.open(functions.invoke)
  await assets
  await functions.invoke('bootstrap', {})
  onProgress('portal and functions')

  const isCatalogScanned = (await embeddedModules.needsScan) && (await scanCatalog(functions, log))
  gateway.open({
    route: createRouter(gatewayRoutes, fallback.function),
    invoke: functions.invoke,
    channel: channel.accept,
    trustedProxies: settings.trustedProxies,
    log,
    metrics: {
      begin: metrics.begin,
      scrape: async (request, path) => (await options.intercept?.(request, path)) ?? metrics.scrape(request, path),
    },
  })
  const stopWork = startWork(settings, { emulators, queues, isCatalogScanned }, functions, log)
  resources.defer(async () => {
    channel.disconnect()
    // A batch or a sweep that exceeds the limit is repeated after the next start.
    const drained = Promise.all([gateway.drain(drainLimitMs), stopWork()])
    const closed = Promise.race([drained, pause(moduleGraceMs)]).then(host.close)
    await Promise.all([Promise.race([drained, pause(drainLimitMs)]), closed])
  })
  await publishAddresses(settings, context, embeddedModules.registry)
  resources.defer(() => removeRuntimeFile(settings.dataDir))
  return toPlatform(resources.move(), context, functionHost.host)
}

const startHost = (
  { dataDir, moduleIsolation: mode, functionEnvironment: settings }: Settings,
  modules: Record<string, string>,
  log: Log,
): Promise<ModuleHost> =>
  startModuleHost({ dataDir, mode, environment: { ...settings, ...modules }, log }).catch((cause: Error) => {
    throw new StartError(`Modules cannot be run: ${cause.message}`, { cause })
  })

/** Scans before requests are served, so that the catalog lists the platform's own modules from the start. */
async function scanCatalog({ invoke, names }: Functions, log: Log): Promise<boolean> {
  if (!names.includes('schedule/catalog')) return false
  try {
    await invoke('schedule/catalog', {})
    return true
  } catch (error) {
    log('failed to scan the catalog', { error })
    return false
  }
}

/** Commands of the same user read these addresses and credentials. */
const publishAddresses = (
  { dataDir, functionEnvironment: names }: Settings,
  { apiUrl, emulators }: EnvironmentContext,
  { host, password }: EmbeddedRegistry,
) =>
  writeRuntimeFile(dataDir, {
    processId: process.pid,
    apiUrl,
    secretsUrl: emulators.secretsUrl,
    dynamoDbUrl: emulators.dynamoDbUrl,
    accessKeyId: emulators.accessKeyId,
    table: names['PLAT_TABLE'] ?? '',
    adminTokenSecret: names['PLAT_SECRET_ADMIN_TOKEN'] ?? '',
    secretNames: Object.fromEntries(Object.entries(names).filter(([name]) => name.startsWith('PLAT_SECRET_'))),
    registry: { host, username: writerName, password },
  })

function toPlatform(
  resources: AsyncDisposableStack,
  { apiUrl: url, channelUrl, emulators }: EnvironmentContext,
  updateSupervisor: UpdateSupervisor,
): Platform {
  let stopResult: Promise<void> | undefined
  return { url, channelUrl, updateSupervisor, emulators, stop: () => (stopResult ??= resources.disposeAsync()) }
}
