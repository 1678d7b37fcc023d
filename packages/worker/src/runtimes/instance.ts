import { link, lstat, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { sendRequest } from './instance-request.ts'
import { emptyFolder, removeFolder } from './folder.ts'
import { type WatchdogChild, spawnWithWatchdog } from './watchdog.ts'
import { instanceSocket, type Launch, type Launcher } from './launcher.ts'
import { captureOutput } from './output-capture.ts'
import { RuntimeError } from './port.ts'

/** What it takes to start an instance. */
export interface InstancePlan extends Pick<Launch, 'name' | 'folder' | 'image' | 'protocol'> {
  launcher: Launcher
  onLine: (line: string) => void
  /** How long it may take until it can be asked. */
  readyMs: number
}

/** A process that can be asked, until it ends. */
export interface Instance {
  /** Settles as soon as it has ended. */
  exited: Promise<unknown>
  /** Settles when nothing of it is left, with how it ended and what it printed last. */
  gone: Promise<string>
  /** Asks it to end, and ends it after the grace; settles when nothing of it is left. */
  end: (graceMs: number) => Promise<void>
}

/** Where an instance is asked. */
export const socketOf = (folder: string): string => join(folder, 'm')

/** Where it makes its socket: a folder that it may see. */
const socketFolderOf = (folder: string): string => join(folder, 's')

/** The longest path of a socket that an instance in a folder has. */
export const longestSocket = (folder: string): string => join(socketFolderOf(folder), instanceSocket)

const pollMs = 15

/**
 * Starts an instance, and answers once it can be asked. Throws `RuntimeFailure`: `refused`, `init_failed` where it ends
 * before, `timeout`; and `unavailable` where the signal says that it is wanted no more. Then nothing of it is left.
 */
export async function startInstance(plan: InstancePlan, signal: AbortSignal): Promise<Instance> {
  const { launcher, name, folder, image, protocol } = plan
  const socketFolder = socketFolderOf(folder)
  if (signal.aborted) throw new RuntimeError('unavailable', 'It was removed before it started.')
  await emptyFolder(folder)
  try {
    await mkdir(socketFolder, { mode: 0o700 })
    const command = await launcher.prepare({ name, folder, socketFolder, image, protocol })
    const child = spawnWithWatchdog(command)
    const output = captureOutput([child.stdout, child.stderr], plan.onLine)
    const gone = child.gone.then(async () => `${await child.exited}\n${output.tail()}`.trim())
    try {
      await whenListening(plan, child, gone, signal)
      await command.onListening?.()
    } catch (error) {
      child.kill()
      await child.gone
      throw error
    }
    return { exited: child.exited, gone, end: (graceMs) => endOf(child, folder, graceMs) }
  } catch (error) {
    await removeFolder(folder)
    throw error
  }
}

/** Settles when the instance answers; throws when it never will, or shall not. */
async function whenListening(plan: InstancePlan, child: WatchdogChild, gone: Promise<string>, signal: AbortSignal) {
  const over = new AbortController()
  const inTime = AbortSignal.any([signal, over.signal])
  const ended = child.exited.then(async () => {
    throw new RuntimeError('init_failed', await gone)
  })
  const late = delay(plan.readyMs, undefined, { signal: inTime }).then(
    () => {
      throw new RuntimeError('timeout', `It did not listen and answer GET /health within ${plan.readyMs / 1000} s.`)
    },
    () => {
      throw new RuntimeError('unavailable', 'It was removed while it started.')
    },
  )
  try {
    await Promise.race([untilItAnswers(plan, over.signal), ended, late])
  } finally {
    over.abort()
  }
}

/** Asks again and again; what it answers does not matter. Without the token, so that nothing it publishes is lost. */
async function untilItAnswers({ folder, readyMs }: InstancePlan, over: AbortSignal): Promise<void> {
  const socketPath = socketOf(folder)
  while (!over.aborted) {
    if (await hasSocket(folder)) {
      const limits = { timeoutMs: readyMs, maxBytes: 1_048_576 }
      const answered = sendRequest({ socketPath }, { method: 'GET', path: '/health' }, limits)
      const isAnswered = await answered.then(
        () => true,
        (failure: RuntimeError) => failure.problem === 'too_large',
      )
      if (isAnswered) return
    }
    await delay(pollMs)
  }
}

/**
 * Gives the instance's socket a second name that it cannot reach. A link in its place, put there afterwards, would lead the
 * platform's requests to sockets that the instance itself has no way to.
 */
async function hasSocket(folder: string): Promise<boolean> {
  const path = socketOf(folder)
  await rm(path, { force: true })
  const isLinked = await link(longestSocket(folder), path).then(
    () => true,
    () => false,
  )
  return isLinked && (await lstat(path)).isSocket()
}

/** Whoever asks from now on finds nobody, and may ask its successor; a connection that is made before the signal is answered. */
async function endOf(child: WatchdogChild, folder: string, graceMs: number): Promise<void> {
  await rm(socketOf(folder), { force: true })
  child.terminate()
  const timer = setTimeout(child.kill, graceMs)
  await child.gone
  clearTimeout(timer)
  await removeFolder(folder)
}
