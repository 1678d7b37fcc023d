import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { startServer } from '../../support/http-server.ts'
import { optionsUrlVariable } from './platform.ts'

/**
 * Serves the `Options` of the platform under test: the platform at PLAT_CONFORMANCE_URL, or a new one. The first
 * request prepares the platform, so that runs of other tests do not wait for it.
 */
export async function setup(): Promise<() => Promise<void>> {
  let child: ChildProcess | undefined
  const prepare = async (): Promise<object> => {
    const { VITEST: _, ...env } = process.env
    child = fork(new URL('platform-process.ts', import.meta.url).pathname, { execArgv: [], env })
    const exit = once(child, 'exit').then(([code]) => [{ error: `The preparation exited with ${code}.` }])
    const [message] = await Promise.race([once(child, 'message'), exit])
    return message
  }
  let prepared: Promise<object> | undefined
  const server = await startServer(async () => {
    const message = await (prepared ??= prepare())
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
