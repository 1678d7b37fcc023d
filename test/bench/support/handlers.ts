import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { GatewayEvent } from '@platform/http/request'
import { send, type TestRequest } from '../../support/request.ts'
import type { HandlerResult } from './handler-process.ts'

export interface HandlerProcess extends Disposable {
  /** Sends requests one at a time; rejects if one fails. */
  run(module: string, requests: readonly TestRequest[]): Promise<HandlerResult>
}

export function startHandlers(): HandlerProcess {
  const child = fork(new URL('handler-process.ts', import.meta.url), {
    env: { ...process.env, PLAT_LOG_LEVEL: 'info' },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit').then((): HandlerResult[] => [])
  return {
    run: async (module, requests) => {
      const url = new URL(`../../../${module}`, import.meta.url).href
      child.send({ module: url, events: await Promise.all(requests.map(eventFor)) })
      const [result]: HandlerResult[] = await Promise.race([once(child, 'message'), exited])
      if (result === undefined) throw new Error(`The process of ${module} ended.`)
      return result
    },
    [Symbol.dispose]: () => void child.kill(),
  }
}

export const eventFor = (request: TestRequest): Promise<GatewayEvent> =>
  new Promise((resolve, reject) => {
    const catchEvent = async (event: GatewayEvent) => {
      resolve(event)
      return { statusCode: 204, headers: {}, body: '', isBase64Encoded: false }
    }
    send(catchEvent, request).catch(reject)
  })
