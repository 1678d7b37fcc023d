import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { startServer } from '../../support/http-server.ts'
import { optionsUrlVariable } from './target.ts'

/**
 * Starts the platform on the first request of a test file, or uses the one of PLAT_CONFORMANCE_URL, and completes its
 * setup.
 */
export async function setup(): Promise<() => Promise<void>> {
  let child: ChildProcess | undefined
  const start = async (): Promise<object> => {
    const { VITEST: _, ...env } = process.env
    child = fork(new URL('platform-process.ts', import.meta.url).pathname, { execArgv: [], env })
    const ended = once(child, 'exit').then(([code]) => ({ error: `It ended with ${code}.` }))
    const [message] = await Promise.race([once(child, 'message'), ended.then((error) => [error])])
    return message
  }
  let prepared: Promise<object> | undefined
  const server = await startServer(async () => {
    const message = await (prepared ??= start())
    return { status: 'error' in message ? 500 : 200, body: JSON.stringify(message) }
  })
  process.env[optionsUrlVariable] = server.url
  return async () => {
    await server[Symbol.asyncDispose]()
    if (!child?.connected) return
    child.disconnect()
    await once(child, 'exit')
  }
}
