import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import * as z from 'zod'
import { compileCache } from '../compile-cache.ts'
import type { Log } from '../log.ts'

export const HostThreadData = z.object({
  dataDir: z.string(),
  mode: z.enum(['auto', 'process', 'container']),
  token: z.string(),
  port: z.number(),
})
export type HostThreadData = z.infer<typeof HostThreadData>

export type HostThreadMessage =
  | { kind: 'ready'; url: string; isolation: string; isFallback: boolean }
  | { kind: 'log'; message: string; details: Record<string, unknown> }

export type HostThreadCommand = 'close' | { environment: Record<string, string> }

export interface ModuleHostOptions extends Pick<HostThreadData, 'dataDir' | 'mode'> {
  /** Settings of the functions, so that the host may access the same registries. */
  environment: Record<string, string>
  log: Log
}

export interface ModuleHost {
  /** The values of `PLAT_MODULE_HOST_URL` and `PLAT_MODULE_HOST_TOKEN`. */
  url: string
  token: string
  /** Describes the isolation between modules and the platform, for operators. */
  isolation: string
  /** Whether only the platform's own modules may run, because containers are unavailable. */
  isFallback: boolean
  /**
   * Adds variables that are not known at the start of the host, such as the address from which it reads the credentials
   * of registries. Call this function before anything is deployed.
   */
  addEnvironment: (environment: Record<string, string>) => void
  /** Ends the modules within 35 seconds. */
  close: () => Promise<void>
}

interface HostThread {
  url: string
  isolation: string
  isFallback: boolean
  end: Promise<unknown>
  send: (command: HostThreadCommand) => void
  close: () => Promise<void>
}

const restartDelayMs = 1000
const defaultThreadUrl = new URL('host-thread.ts', import.meta.url)

/**
 * Runs the module host on its own thread, so that unpacking images and reading output block no other work. If the host
 * ends, starts a new one at the same address; the platform then deploys its modules again. Rejects if the host cannot
 * start.
 */
export async function startModuleHost(options: ModuleHostOptions, threadUrl = defaultThreadUrl): Promise<ModuleHost> {
  const { dataDir, mode, log } = options
  const environment = { ...options.environment, ...compileCache }
  const token = randomBytes(32).toString('base64url')
  const start = (port: number) => startThread(threadUrl, { dataDir, mode, token, port }, environment, log)
  let thread = await start(0)
  const { url, isolation, isFallback } = thread
  const closeController = new AbortController()

  const supervise = async () => {
    while (!closeController.signal.aborted) {
      const reason = await thread.end
      if (closeController.signal.aborted) return
      log('the module host ended and is replaced', { reason })
      await delay(restartDelayMs, undefined, { signal: closeController.signal }).catch(() => undefined)
      if (!closeController.signal.aborted)
        await start(Number(new URL(url).port)).then((newThread) => (thread = newThread), logStartFailure)
    }
  }
  const logStartFailure = (error: unknown) => log('the module host does not start', { error })
  const supervision = supervise()
  const close = async () => {
    closeController.abort()
    await thread.close()
    // A replacement may just be starting.
    await supervision
    await thread.close()
  }
  const addEnvironment = (additions: Record<string, string>) => {
    Object.assign(environment, additions)
    thread.send({ environment: additions })
  }
  let closeResult: Promise<void> | undefined
  return { url, token, isolation, isFallback, addEnvironment, close: () => (closeResult ??= close()) }
}

async function startThread(
  url: URL,
  workerData: HostThreadData,
  env: Record<string, string>,
  log: Log,
): Promise<HostThread> {
  const worker = new Worker(url, { name: 'module-host', env, workerData })
  const end = new Promise<unknown>((resolve) => {
    worker.on('error', resolve)
    worker.on('exit', () => resolve('its thread ended'))
  })
  const exit = new Promise<void>((resolve) => worker.on('exit', () => resolve()))
  const ready = new Promise<Extract<HostThreadMessage, { kind: 'ready' }>>((resolve) => {
    worker.on('message', (message: HostThreadMessage) => {
      if (message.kind === 'ready') resolve(message)
      else log(message.message, message.details)
    })
  })
  const startFailure = end.then((reason) => {
    throw reason instanceof Error ? reason : new Error(String(reason))
  })
  const { url: address, isolation, isFallback } = await Promise.race([ready, startFailure])
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker is not a window
  const send = (command: HostThreadCommand) => worker.postMessage(command)
  return {
    url: address,
    isolation,
    isFallback,
    end,
    send,
    close: async () => {
      send('close')
      await exit
    },
  }
}
