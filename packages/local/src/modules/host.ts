import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import * as z from 'zod'
import { compileCache } from '../compile-cache.ts'
import type { Log } from '../log.ts'

/** What the thread of the host is told, and what it says. */
export const HostThreadData = z.object({
  dataDir: z.string(),
  mode: z.enum(['auto', 'process', 'container']),
  token: z.string(),
  port: z.number(),
})
export type HostThreadData = z.infer<typeof HostThreadData>

export type HostThreadMessage =
  | { kind: 'ready'; url: string; isolation: string }
  | { kind: 'log'; message: string; details: Record<string, unknown> }

/** What the thread of the host is told later: to close, or what else of the environment is known by then. */
export type HostThreadOrder = 'close' | { environment: Record<string, string> }

export interface ModuleHostOptions extends Pick<HostThreadData, 'dataDir' | 'mode'> {
  /** Settings of the functions: registries are asked with the same ones (core/module/registries.ts). */
  environment: Record<string, string>
  log: Log
}

/** Runs the modules of a platform on one machine. */
export interface ModuleHost {
  /** What the functions get as `PLAT_MODULE_HOST_URL` and `PLAT_MODULE_HOST_TOKEN`. */
  url: string
  token: string
  /** In words for people: what keeps modules apart from the platform. */
  isolation: string
  /** Adds to the environment, before anything is deployed: where the credentials of registries are. */
  provide: (environment: Record<string, string>) => void
  /** Ends the modules, within ten seconds. */
  close: () => Promise<void>
}

interface HostThread {
  url: string
  isolation: string
  /** Settles when the thread is no more. */
  ended: Promise<unknown>
  order: (order: HostThreadOrder) => void
  close: () => Promise<void>
}

const restartMs = 1000
const ownThread = new URL('host-thread.ts', import.meta.url)

/**
 * Starts the module host, on a thread of its own: unpacking images and reading what modules print hold up nobody. A host that
 * dies is replaced at the same address; its modules ended with it, and the platform deploys them again. Rejects with what stands
 * in the way of a start.
 */
export async function startModuleHost(options: ModuleHostOptions, threadUrl = ownThread): Promise<ModuleHost> {
  const { dataDir, mode, log } = options
  const environment = { ...options.environment, ...compileCache }
  const token = randomBytes(32).toString('base64url')
  const start = (port: number) => startThread(threadUrl, { dataDir, mode, token, port }, environment, log)
  let thread = await start(0)
  const { url, isolation } = thread
  const closing = new AbortController()

  const keep = async () => {
    while (!closing.signal.aborted) {
      const reason = await thread.ended
      if (closing.signal.aborted) return
      log('the module host ended and is replaced', { reason })
      await delay(restartMs, undefined, { signal: closing.signal }).catch(() => undefined)
      if (!closing.signal.aborted) await start(Number(new URL(url).port)).then((next) => (thread = next), failed)
    }
  }
  const failed = (error: unknown) => log('the module host does not start', { error })
  const kept = keep()
  const close = async () => {
    closing.abort()
    await thread.close()
    // One that was just being started.
    await kept
    await thread.close()
  }
  const provide = (more: Record<string, string>) => {
    Object.assign(environment, more)
    thread.order({ environment: more })
  }
  let closed: Promise<void> | undefined
  return { url, token, isolation, provide, close: () => (closed ??= close()) }
}

async function startThread(
  url: URL,
  workerData: HostThreadData,
  env: Record<string, string>,
  log: Log,
): Promise<HostThread> {
  const worker = new Worker(url, { name: 'module-host', env, workerData })
  const ended = new Promise<unknown>((resolve) => {
    worker.on('error', resolve)
    worker.on('exit', () => resolve('its thread ended'))
  })
  const exited = new Promise<void>((resolve) => worker.on('exit', () => resolve()))
  const ready = new Promise<Extract<HostThreadMessage, { kind: 'ready' }>>((resolve) => {
    worker.on('message', (message: HostThreadMessage) => {
      if (message.kind === 'ready') resolve(message)
      else log(message.message, message.details)
    })
  })
  const failed = ended.then((reason) => {
    throw reason instanceof Error ? reason : new Error(String(reason))
  })
  const { url: address, isolation } = await Promise.race([ready, failed])
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker is not a window
  const order = (given: HostThreadOrder) => worker.postMessage(given)
  return {
    url: address,
    isolation,
    ended,
    order,
    close: async () => {
      order('close')
      await exited
    },
  }
}
