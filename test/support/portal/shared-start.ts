import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { startServer } from '../http-server.ts'

/**
 * The variable with the URL that returns the address of the shared platform. Its path `/seed` returns the ids of the
 * seed data.
 */
export const sharedPlatformVariable = 'PLAT_TEST_SHARED_PLATFORM'

/** Offers one platform to all test files of a run. The first request starts it; the first `/seed` request seeds it. */
export async function setup(): Promise<() => Promise<void>> {
  let child: ChildProcess | undefined
  const start = () => {
    const { VITEST: _, ...env } = process.env
    child = fork(new URL('shared-process.ts', import.meta.url).pathname, { execArgv: [], env })
    return nextMessage(child)
  }
  const fill = async () => {
    await (platform ??= start())
    child?.send('seed')
    return child ? nextMessage(child) : ''
  }
  let platform: Promise<string> | undefined
  let seed: Promise<string> | undefined
  const server = await startServer(async ({ url: { pathname } }) => ({
    status: 200,
    body: await (pathname === '/seed' ? (seed ??= fill()) : (platform ??= start())),
  }))
  process.env[sharedPlatformVariable] = server.url
  return async () => {
    await server[Symbol.asyncDispose]()
    if (!child?.connected) return
    child.disconnect()
    await once(child, 'exit')
  }
}

async function nextMessage(child: ChildProcess): Promise<string> {
  const exited = once(child, 'exit').then(([code]) => Promise.reject(new Error(`The platform exited with ${code}.`)))
  const [message] = await Promise.race([once(child, 'message'), exited])
  return JSON.stringify(message)
}
