import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Deployment } from '@platform/core/modules/deployment'
import { environmentNames as names } from '@platform/modules/protocol'
import { callInstance } from './instance-request.ts'
import { emptyFolder, type Launcher } from './launcher.ts'
import type { Images } from './images.ts'
import { longestSocketOf, socketOf } from './instance.ts'
import { type DeploymentSpec, type ModuleRuntime, RuntimeError } from './port.ts'
import { restartDelayMs as defaultPauseMs, Supervisor } from './supervisor.ts'

export interface SupervisedOptions {
  launcher: Launcher
  images: Images
  /** Folder for sockets and other files of running instances; emptied at startup. For its length see `checkRunFolder`. */
  runFolder: string
  tokenOf: (deploymentId: string) => Promise<string>
  onLog: (moduleId: string, line: string) => void
  /** Time limit for an instance to accept requests; 15 s by default. */
  readyMs?: number
  /** Delay before the next start after this many crashes; `restartDelayMs` by default. */
  pauseMs?: (crashCount: number) => number
}

/** A runtime that owns its processes: they end with it. */
export interface SupervisedRuntime extends ModuleRuntime {
  close: (graceMs: number) => Promise<void>
}

interface RunningModule {
  deployment: Deployment
  supervisor: Supervisor
  /** Settles when the first start has succeeded or failed. */
  firstStart: Promise<void>
  isStarted: boolean
  isHeld: boolean
  removal?: Promise<void>
}

/** Maximum length of a socket path: 108 bytes including the terminating zero on Linux, 104 on other systems. */
const maxPathBytes = process.platform === 'linux' ? 107 : 103

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Returns a short path, because the folder is part of a socket path. */
const folderOf = (runFolder: string, id: string): string => join(runFolder, hashOf(id).slice(0, 12))

/** Throws `RuntimeError` (`refused`) if socket paths in the folder would be too long. */
export function checkRunFolder(runFolder: string): void {
  const pathBytes = Buffer.byteLength(longestSocketOf(folderOf(runFolder, '')))
  if (pathBytes <= maxPathBytes) return
  const problem = `Sockets in ${runFolder} would have paths of ${pathBytes} bytes, but the limit is ${maxPathBytes}`
  throw new RuntimeError('refused', `${problem}: choose a folder with a shorter path.`)
}

/** Runs modules as supervised processes of this machine, and calls them over Unix sockets. */
export async function superviseModules(options: SupervisedOptions): Promise<SupervisedRuntime> {
  const { images, runFolder, tokenOf } = options
  checkRunFolder(runFolder)
  await emptyFolder(runFolder)
  const runningById = new Map<string, RunningModule>()
  let isClosed = false

  const remove = (runningModule: RunningModule, graceMs: number): Promise<void> =>
    (runningModule.removal ??= end(runningModule, graceMs, images).finally(() => {
      runningById.delete(runningModule.deployment.id)
    }))

  return {
    async deploy(spec) {
      const { id, digest } = spec
      const token = await tokenOf(id)
      for (let before = runningById.get(id); before?.removal !== undefined; before = runningById.get(id)) {
        await before.removal.catch(() => {})
      }
      if (isClosed) throw new RuntimeError('unavailable', 'The platform is stopping.')
      const runningModule = runningById.get(id) ?? createRunningModule(spec, token, options)
      runningById.set(id, runningModule)
      if (runningModule.deployment.digest !== digest) throw new RuntimeError('refused', `${id} runs another image.`)
      try {
        await runningModule.firstStart
      } catch (error) {
        await remove(runningModule, 0)
        throw error
      }
      const { state, lastCrash } = runningModule.supervisor.status
      if (state === 'failed') throw new RuntimeError('crashed', `The deployment is not restarted. ${lastCrash}`)
      return runningModule.deployment
    },

    async request({ id }, request, limits) {
      const runningModule = runningById.get(id)
      const isUp = runningModule?.isStarted === true && runningModule.supervisor.status.state === 'running'
      if (!isUp) throw new RuntimeError('unavailable', 'The deployment is not running.')
      return callInstance(runningModule.deployment.handle, await tokenOf(id), request, limits)
    },

    async remove({ id, digest }, graceMs) {
      const runningModule = runningById.get(id)
      // A deployment of an earlier process does not run; only its image may exist.
      await (runningModule === undefined ? images.removeUnheld(digest) : remove(runningModule, graceMs))
    },

    async list() {
      const startedModules = [...runningById.values()].filter(({ isStarted }) => isStarted)
      return startedModules.map(({ deployment, supervisor }) => Object.assign(supervisor.status, { deployment }))
    },

    tidy: (digests) => images.removeOthers(digests),

    async close(graceMs) {
      isClosed = true
      await Promise.all([...runningById.values()].map(({ supervisor }) => supervisor.end(graceMs)))
    },
  }
}

function createRunningModule(spec: DeploymentSpec, token: string, options: SupervisedOptions): RunningModule {
  const { launcher, images, runFolder, onLog, readyMs = 15_000, pauseMs = defaultPauseMs } = options
  const { id, moduleId, version, digest } = spec
  const { kind, isolation } = launcher
  const folder = folderOf(runFolder, id)
  const supervisor = new Supervisor({
    launcher,
    name: `platform-${hashOf(folder).slice(0, 16)}`,
    folder,
    readyMs,
    pauseMs,
    onLine: (line) => onLog(moduleId, line),
    protocolOf: (isFirst) => protocolOf(spec, token, spec.startsItself || !isFirst),
  })
  const handle = socketOf(folder)
  const deployment = { runtime: kind, isolation, id, moduleId, version, digest, handle }
  const runningModule: RunningModule = {
    deployment,
    supervisor,
    firstStart: Promise.resolve(),
    isStarted: false,
    isHeld: false,
  }
  runningModule.firstStart = start(runningModule, spec, images)
  return runningModule
}

async function start(runningModule: RunningModule, spec: DeploymentSpec, images: Images): Promise<void> {
  const image = await images.hold(spec)
  runningModule.isHeld = true
  await runningModule.supervisor.start(image)
  runningModule.isStarted = true
}

async function end(runningModule: RunningModule, graceMs: number, images: Images): Promise<void> {
  await runningModule.supervisor.end(graceMs)
  await runningModule.firstStart.catch(() => {})
  if (runningModule.isHeld) await images.release(runningModule.deployment.digest)
}

const protocolOf = (spec: DeploymentSpec, token: string, startsItself: boolean): Record<string, string> => ({
  [names.token]: token,
  [names.organisation]: spec.organisationId,
  [names.deployment]: spec.id,
  [names.module]: spec.moduleId,
  [names.startsItself]: startsItself ? '1' : '0',
})
