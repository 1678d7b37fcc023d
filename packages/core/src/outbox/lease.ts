import * as z from 'zod'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, tryUpdate } from '../db/table.ts'
import { newNonce } from '../id.ts'
import { enqueueProjections } from '../aws/queues.ts'

/**
 * One worker at a time keeps the books of an organisation. Whoever comes meanwhile leaves word and goes: the worker looks
 * again before it rests. Nothing depends on it but speed: workers that meet all the same get in each other's way, no more.
 */

/** A function has 30 seconds. */
const workMs = 15_000
/** One that works says so again after this long. */
const stretchMs = 5000
/** A worker that was killed keeps others out for no longer than this. */
const turnMs = 10_000

const Turn = z.object({ holder: z.string().optional() })

/**
 * Does the work as the only one, and again while word is left; not at all where somebody else is at it. Work is told how
 * long it may go on, and answers whether it is done; if not, a message hands it on. Two calls more than the work.
 */
export async function withLease(organisationId: string, work: (endMs: number) => Promise<boolean>): Promise<void> {
  const [holder, endMs] = [newNonce(), now() + workMs]
  if (!(await begin(organisationId, holder))) return
  let isOver = false
  try {
    while (!isOver && now() <= endMs) {
      const isDone = await work(Math.min(endMs, now() + stretchMs))
      isOver = isDone ? await end(organisationId, holder) : !(await goOn(organisationId, holder))
    }
  } finally {
    if (!isOver) await leave(organisationId, holder)
  }
  if (!isOver) await enqueueProjections(organisationId)
}

/** Ends the turn at once, whatever word is left. */
const leave = (organisationId: string, holder: string): Promise<unknown> =>
  tryUpdate(keys.projectionLease(organisationId), { remove: ['holder', 'untilMs'] }, { holder: { is: holder } })

async function begin(organisationId: string, holder: string): Promise<boolean> {
  const key = keys.projectionLease(organisationId)
  for (;;) {
    const taken = { set: { holder, untilMs: now() + turnMs }, remove: ['isAsked'] }
    if (await tryUpdate(key, taken, { untilMs: { absentOrAtMost: now() } })) return true
    const { holder: current } = Turn.parse((await get(key)) ?? {})
    // Our own turn, whose acknowledgement was lost.
    if (current === holder) return true
    if (current === undefined) continue
    if (await tryUpdate(key, { set: { isAsked: true } }, { holder: { is: current } })) return false
  }
}

/** Answers false where word was left: then the turn goes on. */
async function end(organisationId: string, holder: string): Promise<boolean> {
  const key = keys.projectionLease(organisationId)
  const isOurs = { holder: { is: holder } } as const
  const rested = await tryUpdate(key, { remove: ['holder', 'untilMs'] }, { ...isOurs, isAsked: { absent: true } })
  if (rested !== undefined) return true
  return !(await goOn(organisationId, holder))
}

/** Keeps the turn for a while longer; false where it lasted too long and somebody else has taken over. */
async function goOn(organisationId: string, holder: string): Promise<boolean> {
  const longer = { set: { untilMs: now() + turnMs }, remove: ['isAsked'] }
  return (await tryUpdate(keys.projectionLease(organisationId), longer, { holder: { is: holder } })) !== undefined
}
