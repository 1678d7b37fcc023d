import { now, nowSeconds } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, tryUpdate } from '@platform/core/db/table'
import { newNonce } from '@platform/core/id'
import { eventRetentionSeconds } from '@platform/core/modules/event-projection'
import * as z from 'zod'

/** One worker at a time hands a module its events, so that they come in order; what it has learnt about them stays. */

/** Longer than a message takes. A worker that was killed holds the module's events up for no longer than this. */
const turnMs = 60_000

/** How handing over goes. */
export interface Progress {
  /** Times in a row that the module could not be reached, or refused what it was handed. */
  failures: number
  /** Until then nothing is handed over. */
  quietUntilMs: number
  /** Up to this event they go one by one, so that it shows which of them fails. */
  carefulTo: string
}

const Row = z.object({
  holder: z.string().optional(),
  failures: z.number().default(0),
  quietUntilMs: z.number().default(0),
  carefulTo: z.string().default(''),
})

export type DeliveryLease = Progress & { moduleId: string; holder: string }

/** Takes the turn; undefined where somebody else has it. One call, two where the acknowledgement was lost. */
export async function acquireDelivery(moduleId: string): Promise<DeliveryLease | undefined> {
  const [key, holder] = [keys.moduleDelivery(moduleId), newNonce()]
  const set = { holder, untilMs: now() + turnMs, ttl: nowSeconds() + 2 * eventRetentionSeconds }
  const taken = (await tryUpdate(key, { set }, { untilMs: { absentOrAtMost: now() } })) ?? (await get(key))
  const row = Row.parse(taken ?? {})
  return row.holder === holder ? { ...row, moduleId, holder } : undefined
}

/** Gives the turn back with what was learnt in it; nothing where somebody else has taken over. One call. */
export async function releaseDelivery({
  moduleId,
  holder,
  failures,
  quietUntilMs,
  carefulTo,
}: DeliveryLease): Promise<void> {
  const change = { set: { failures, quietUntilMs, carefulTo }, remove: ['holder', 'untilMs'] }
  await tryUpdate(keys.moduleDelivery(moduleId), change, { holder: { is: holder } })
}
