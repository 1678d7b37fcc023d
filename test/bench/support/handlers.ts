import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { GatewayEvent } from '@platform/http/request'
import { send, type TestRequest } from '../../support/request.ts'
import type { Outcome, Task } from './handler-process.ts'

/** A process of its own that runs handlers, as a warm Lambda sandbox would. */
export interface HandlerProcess extends AsyncDisposable {
  /** Sends requests one after another; rejects when one is refused. */
  run(module: string, requests: readonly TestRequest[]): Promise<Outcome>
}

const program = new URL('handler-process.ts', import.meta.url)

/** Log lines are written as in production, to nowhere. */
export function startHandlers(environment: Record<string, string>): HandlerProcess {
  const child = fork(program, {
    env: { ...process.env, ...environment, PLAT_LOG_LEVEL: 'info' },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  return {
    run: async (module, requests) => {
      const address = new URL(`../../../${module}`, import.meta.url).href
      return ask(child, { module: address, events: await Promise.all(requests.map(eventOf)) })
    },
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null) return
      child.kill()
      await once(child, 'exit')
    },
  }
}

/** The event that a function is handed for a request. */
export const eventOf = (sent: TestRequest): Promise<GatewayEvent> =>
  new Promise((resolve, reject) => {
    const catchEvent = async (event: GatewayEvent) => {
      resolve(event)
      return { statusCode: 204, headers: {}, body: '', isBase64Encoded: false }
    }
    send(catchEvent, sent).catch(reject)
  })

async function ask(child: ChildProcess, task: Task): Promise<Outcome> {
  const answer = new AbortController()
  const died = once(child, 'exit', { signal: answer.signal }).then(
    () => Promise.reject(new Error('A process of handlers died.')),
    () => new Promise<never>(() => undefined),
  )
  child.send(task)
  const [outcome]: Outcome[] = await Promise.race([once(child, 'message', { signal: answer.signal }), died])
  answer.abort()
  if (outcome === undefined) throw new Error('A process of handlers answered nothing.')
  return outcome
}
