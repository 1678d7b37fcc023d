import type { GatewayEvent } from '@platform/http/request'
import type { GatewayHandler } from '@platform/http/response'
import { stubStore } from './stub-store.ts'

/** What a handler's process is asked to do. */
export interface Task {
  /** Address of a module that exports `handler`. */
  module: string
  events: GatewayEvent[]
}

/** What that took, and how long the bodies of its answers were. Every answer was a success. */
export interface Outcome {
  cpuMicroseconds: number
  wallMs: number[]
  bodyBytes: number
}

async function perform({ module, events }: Task): Promise<Outcome> {
  const { handler }: { handler: GatewayHandler } = await import(module)
  const wallMs: number[] = []
  let bodyBytes = 0
  const before = process.cpuUsage()
  for (const event of events) {
    const startedAtMs = performance.now()
    const { statusCode, body } = await handler(event)
    wallMs.push(performance.now() - startedAtMs)
    if (statusCode >= 300) throw new Error(`${module} answered ${statusCode}: ${body}`)
    bodyBytes += body.length
  }
  const { user, system } = process.cpuUsage(before)
  return { cpuMicroseconds: user + system, wallMs, bodyBytes }
}

/** What a stubbed store holds, as JSON; without it the store is asked. */
const { BENCH_STUB: stubbed, PLAT_TABLE: table = '' } = process.env
if (stubbed !== undefined) stubStore(table, JSON.parse(stubbed))

process.on('message', (task: Task) => void perform(task).then((outcome) => process.send?.(outcome)))
