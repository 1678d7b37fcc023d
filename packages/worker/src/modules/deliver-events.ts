import { now } from '@platform/core/clock'
import { enqueueModuleDelivery } from '@platform/core/aws/queues'
import { type ModuleRequester } from '../runtimes/port.ts'
import { endTurn, takeTurn, type Turn } from './delivery-lease.ts'
import { handBatch, handOne, type Served } from './deliver-batch.ts'
import { findModule, isServed } from './records.ts'
import { moduleRequester } from './client.ts'
import { forgetEvents, hasEvents, nextEvents } from './pending-event.ts'

/**
 * Hands modules the events that wait for them (D37): in order, at least once, one worker at a time for each module. One that
 * fails is left alone for a while, longer each time, and holds up nobody else.
 */

/** No batch is begun later than this: a function has 30 seconds, and a batch may take ten. */
const workMs = 10_000

/**
 * Hands a module what waits for it. Five calls, and two for every 50 events. Where somebody else is at it three, and nothing
 * where the module does not run.
 */
export async function deliverWaiting(
  moduleId: string,
  pick: () => Promise<ModuleRequester> = moduleRequester,
): Promise<void> {
  const row = await findModule(moduleId)
  if (row === undefined) return forgetEvents(moduleId)
  if (!isServed(row)) return
  const turn = await takeTurn(moduleId)
  if (turn === undefined) return
  const isQuiet = turn.quietUntilMs > now()
  const after = isQuiet ? turn : await handOver({ runtime: await pick(), row }, turn)
  await endTurn(after)
  // Whoever has begun the quiet has sent the message that ends it.
  if (isQuiet) return
  // What has come since the last look had its message answered while the turn was taken.
  const waitSeconds = Math.ceil(Math.max(after.quietUntilMs - now(), 0) / 1000)
  if (await hasEvents(moduleId)) await enqueueModuleDelivery(row.organisationId, moduleId, waitSeconds)
}

async function handOver(served: Served, turn: Turn): Promise<Turn> {
  const untilMs = now() + workMs
  let current = turn
  while (current.quietUntilMs <= now() && now() < untilMs) {
    const waiting = await nextEvents(turn.moduleId)
    if (waiting === undefined) break
    const [first] = waiting
    if (first === undefined) continue
    current =
      first.sk <= current.carefulTo ? await handOne(served, current, first) : await handBatch(served, current, waiting)
  }
  return current
}
