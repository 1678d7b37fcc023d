import type { IncomingMessage } from 'node:http'
import { serviceError } from './errors.ts'
import type { FaultSettings } from './faults.ts'
import { parseObject } from './json.ts'
import type { Metrics } from './metrics.ts'
import type { Store } from './store.ts'

type Control = (store: Store, metrics: Metrics, body: string) => object

const CONTROLS = new Map<string, Control>(
  Object.entries({
    'GET /_faults': ({ faults }) => faults.read(),
    'POST /_faults': ({ faults }, _metrics, body) => faults.set(parseObject(body) as Partial<FaultSettings>),
    'DELETE /_faults': ({ faults }) => faults.reset(),
    'GET /_metrics': ({ commits }, metrics) => ({ operations: metrics.read(), commits: commits.batches }),
    'POST /_metrics/reset': (_store, metrics) => {
      metrics.reset()
      return {}
    },
  } satisfies Record<string, Control>),
)

export function isControlPath(url: string | undefined): boolean {
  return url?.startsWith('/_') === true
}

/** The paths beside the protocol: fault switches and counters, for other threads and processes. */
export function answerControl(store: Store, metrics: Metrics, request: IncomingMessage, body: string): object {
  const control = CONTROLS.get(`${request.method} ${request.url}`)
  if (!control) throw serviceError('UnknownOperationException')
  // A page of another origin cannot send this content type without asking first, and nobody answers that.
  if (request.method !== 'GET' && request.headers['content-type'] !== 'application/json') {
    throw serviceError('AccessDeniedException', 'The content type must be application/json')
  }
  return control(store, metrics, body)
}
