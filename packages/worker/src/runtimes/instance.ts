import { link, lstat, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { sendRequest } from './instance-request.ts'
import { emptyFolder, removeFolder, instanceSocketName, type Launch, type Launcher } from './launcher.ts'
import { type WatchdogChild, spawnWithWatchdog } from './watchdog.ts'
import { captureOutput } from './output-capture.ts'
import { RuntimeError } from './port.ts'

export interface InstancePlan extends Pick<Launch, 'name' | 'folder' | 'image' | 'protocol'> {
  launcher: Launcher
  onLine: (line: string) => void
  readyMs: number
}

export interface Instance {
  /** Settles once the process has ended. */
  exited: Promise<unknown>
  /** Settles after the cleanup, with the exit reason and the last output. */
  cleanedUp: Promise<string>
  /** Terminates the process, kills it after the grace period, and settles after the cleanup. */
  end: (graceMs: number) => Promise<void>
}

export const socketOf = (folder: string): string => join(folder, 'm')

/** The folder in which the instance creates its socket. The instance can access this folder. */
const socketFolderOf = (folder: string): string => join(folder, 's')

export const longestSocketOf = (folder: string): string => join(socketFolderOf(folder), instanceSocketName)

const pollMs = 15

/**
 * Starts an instance and returns once it accepts requests. Throws `RuntimeError`: `refused`, `init_failed` if the
 * process ends before that, `timeout`, and `unavailable` if the signal aborts the start. An instance that fails to
 * start leaves no files.
 */
export async function startInstance(plan: InstancePlan, signal: AbortSignal): Promise<Instance> {
  const { launcher, name, folder, image, protocol } = plan
  const socketFolder = socketFolderOf(folder)
  if (signal.aborted) throw new RuntimeError('unavailable', 'The deployment was removed before it started.')
  await emptyFolder(folder)
  try {
    await mkdir(socketFolder, { mode: 0o700 })
    const command = await launcher.prepare({ name, folder, socketFolder, image, protocol })
    const child = spawnWithWatchdog(command)
    const output = captureOutput([child.stdout, child.stderr], plan.onLine)
    const cleanedUp = child.cleanedUp.then(async () => `${await child.exited}\n${output.tail()}`.trim())
    try {
      await whenListening(plan, child, cleanedUp, signal)
      await command.onListening?.()
    } catch (error) {
      child.kill()
      await child.cleanedUp
      throw error
    }
    return { exited: child.exited, cleanedUp, end: (graceMs) => stopInstance(child, folder, graceMs) }
  } catch (error) {
    await removeFolder(folder)
    throw error
  }
}

/** Settles when the instance responds; throws if it ends, times out or is aborted. */
async function whenListening(
  plan: InstancePlan,
  child: WatchdogChild,
  cleanedUp: Promise<string>,
  signal: AbortSignal,
) {
  const finishController = new AbortController()
  const signals = AbortSignal.any([signal, finishController.signal])
  const ended = child.exited.then(async () => {
    throw new RuntimeError('init_failed', await cleanedUp)
  })
  const timeout = delay(plan.readyMs, undefined, { signal: signals }).then(
    () => {
      throw new RuntimeError('timeout', `The module did not respond to GET /health within ${plan.readyMs / 1000} s.`)
    },
    () => {
      throw new RuntimeError('unavailable', 'The deployment was removed while it started.')
    },
  )
  try {
    await Promise.race([untilResponding(plan, finishController.signal), ended, timeout])
  } finally {
    finishController.abort()
  }
}

/**
 * Polls until any response arrives. Sends no token: a response to a request with a token may contain published events,
 * which would be lost here.
 */
async function untilResponding({ folder, readyMs }: InstancePlan, finishSignal: AbortSignal): Promise<void> {
  const socketPath = socketOf(folder)
  while (!finishSignal.aborted) {
    if (await hasSocket(folder)) {
      const limits = { timeoutMs: readyMs, maxBytes: 1_048_576 }
      const response = sendRequest({ socketPath }, { method: 'GET', path: '/health' }, limits)
      const isResponding = await response.then(
        () => true,
        (failure: RuntimeError) => failure.problem === 'too_large',
      )
      if (isResponding) return
    }
    await delay(pollMs)
  }
}

/**
 * Links the instance's socket to a second path that the instance cannot access. Otherwise the instance could replace
 * the socket by a link, and route the platform's requests to sockets that it cannot access itself.
 */
async function hasSocket(folder: string): Promise<boolean> {
  const path = socketOf(folder)
  await rm(path, { force: true })
  const isLinked = await link(longestSocketOf(folder), path).then(
    () => true,
    () => false,
  )
  return isLinked && (await lstat(path)).isSocket()
}

/**
 * Removes the socket first, so that new requests can go to the successor. Requests on open connections are still
 * answered.
 */
async function stopInstance(child: WatchdogChild, folder: string, graceMs: number): Promise<void> {
  await rm(socketOf(folder), { force: true })
  child.terminate()
  const timer = setTimeout(child.kill, graceMs)
  await child.cleanedUp
  clearTimeout(timer)
  await removeFolder(folder)
}
