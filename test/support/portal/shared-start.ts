import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { startServer } from '../http-server.ts'

/** The variable that says where the run's platform is asked for; at `/seed`, what its own organisation holds. */
export const sharedPlatformAt = 'PLAT_TEST_SHARED_PLATFORM'

/** Has a platform for all test files of a run: it is started, and filled, once, when the first of them asks for it. */
export async function setup(): Promise<() => Promise<void>> {
  let child: ChildProcess | undefined
  const started = () => {
    const { VITEST: _, ...env } = process.env
    child = fork(new URL('shared-process.ts', import.meta.url).pathname, { execArgv: [], env })
    return said(child)
  }
  const filled = async () => {
    await (platform ??= started())
    child?.send('seed')
    return child ? said(child) : ''
  }
  let platform: Promise<string> | undefined
  let seed: Promise<string> | undefined
  const server = await startServer(async ({ url: { pathname } }) => ({
    status: 200,
    body: await (pathname === '/seed' ? (seed ??= filled()) : (platform ??= started())),
  }))
  process.env[sharedPlatformAt] = server.url
  return async () => {
    await server[Symbol.asyncDispose]()
    if (child?.connected) {
      child.disconnect()
      await once(child, 'exit')
    }
  }
}

/** What the process says next. */
async function said(by: ChildProcess): Promise<string> {
  const ended = once(by, 'exit').then(([code]) => Promise.reject(new Error(`It has ended with ${code}.`)))
  const [message] = await Promise.race([once(by, 'message'), ended])
  return JSON.stringify(message)
}
