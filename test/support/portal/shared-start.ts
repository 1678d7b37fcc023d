import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { startServer } from '../http-server.ts'

/** The variable that says where the run's platform is asked for. */
export const sharedPlatformAt = 'PLAT_TEST_SHARED_PLATFORM'

/** Has a platform for all test files of a run: it is started once, when the first of them asks for it. */
export async function setup(): Promise<() => Promise<void>> {
  let child: ChildProcess | undefined
  const started = async () => {
    const { VITEST: _, ...env } = process.env
    child = fork(new URL('shared-process.ts', import.meta.url).pathname, { execArgv: [], env })
    const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`It has ended with ${code}.`)))
    const [message] = await Promise.race([once(child, 'message'), ended])
    return JSON.stringify(message)
  }
  let platform: Promise<string> | undefined
  const server = await startServer(async () => ({ status: 200, body: await (platform ??= started()) }))
  process.env[sharedPlatformAt] = server.url
  return async () => {
    await server[Symbol.asyncDispose]()
    if (child?.connected) {
      child.disconnect()
      await once(child, 'exit')
    }
  }
}
