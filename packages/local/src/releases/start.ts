import { join } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import { infrastructureRevision } from '@platform/core/updates/infrastructure'
import { version } from '@platform/core/lib/version'
import { listFunctionNames } from '../function-files.ts'
import type { Log } from '../log.ts'
import type { Settings } from '../settings.ts'
import { StartError } from '../start-error.ts'
import type { Functions } from '../events/start.ts'
import { createControl, type UpdateControl } from './control.ts'
import { type ControlServer, serveControl } from './control-server.ts'
import { recoveryAdvice, releaseAtStart } from './current.ts'
import { type StoredRelease, removeDrafts } from './folder.ts'
import { createTrafficSplit } from './traffic-split.ts'
import { startVersion } from './version.ts'

export type UpdateSupervisor = Pick<ControlServer, 'url' | 'token'>

export interface RunningFunctions extends Functions {
  host: UpdateSupervisor
  /** Ends all threads. Running invocations fail. */
  close: () => Promise<void>
}

type EnvironmentFor = (updateSupervisor: UpdateSupervisor) => Record<string, string>

/**
 * Starts the functions of the release that was applied last, or of the checkout. Resolves when the functions that serve
 * requests are imported. Throws `StartError` for a release that is damaged or cannot start.
 */
export async function startFunctions(
  settings: Settings,
  environmentFor: EnvironmentFor,
  connect: () => MessagePort,
  log: Log,
): Promise<RunningFunctions> {
  await using resources = new AsyncDisposableStack()
  const releasesDir = join(settings.dataDir, 'releases')
  const checkout = { version, infrastructure: infrastructureRevision() }
  const names = await listFunctionNames(settings.functionsDir)
  await removeDrafts(releasesDir)

  const control = Promise.withResolvers<UpdateControl>()
  const host = await serveControl(control.promise, log)
  resources.defer(host.close)
  const environment = environmentFor(host)
  const start = (namesToImport: readonly string[], release?: StoredRelease) =>
    startVersion({ settings, environment, connect, log }, namesToImport, release)

  const release = await releaseAtStart(releasesDir, checkout, log)
  const firstVersion = await start(names.filter(servesRequests), release).catch((cause: Error) => {
    if (release === undefined) throw cause
    const problem = `Release ${release.version} does not start: ${cause.message}.`
    throw new StartError(`${problem} ${recoveryAdvice(releasesDir, checkout)}`, { cause })
  })
  const tidy = () => control.promise.then(({ tidy: run }) => run())
  const onDrained = () => void tidy().catch((error: unknown) => log('releases could not be removed', { error }))
  const trafficSplit = createTrafficSplit(firstVersion, onDrained)
  resources.defer(trafficSplit.close)
  // Imports all functions of a staged release, to find errors before it serves. No request waits for these imports.
  const startAll = (stagedRelease?: StoredRelease) => start(names, stagedRelease)
  control.resolve(createControl({ releasesDir, checkout, functionNames: names, trafficSplit, start: startAll }))
  const ownedResources = resources.move()
  return { invoke: trafficSplit.invoke, names, host, close: () => ownedResources.disposeAsync() }
}

/** The start waits only for the import of these functions. Consumers and schedules are imported when they first run. */
const servesRequests = (functionName: string): boolean => !/^(?:queue|schedule)\//.test(functionName)
