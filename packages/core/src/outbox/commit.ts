import type * as z from 'zod'
import { enqueueProjections, enqueueProjectionsSoon, outboxRetryMs } from '../aws/queues.ts'
import { outboxCheck } from './outbox-check.ts'
import type { Actor, Caller } from '../caller.ts'
import { now } from '../clock.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { type WriteItem, check, create, getConsistent, type Item } from '../db/table.ts'
import { type ConditionFailure, transact } from '../db/transact.ts'
import { newId } from '../id.ts'
import { failpoint } from '../lib/failpoint.ts'
import { currentTraceId } from '../log.ts'
import { storeResponseWrite } from './idempotency.ts'
import { transitionsWithCounts, type Effects, type RecordBody, storedBody } from './record.ts'

export interface Change extends Effects {
  writes: readonly WriteItem[]
  /** The response body, stored for repeats of an idempotent request; `undefined` for no body. */
  response?: unknown
  /**
   * Set if this change needs no message to start the projections, for example because the use case sends another
   * message that starts them.
   */
  isEnqueued?: true
  /**
   * Delays the projections by a few seconds. Set for frequent changes that another change usually follows, so that one
   * run projects both.
   */
  canWait?: true
}

/**
 * One transaction contains the writes, the outbox record and the idempotent response. Throws `unauthenticated` or
 * `forbidden` if the caller's session has lost the required rights. Returns the first failed condition, or throws the
 * error of its write.
 */
export async function commit(actor: Actor, change: Change): Promise<ConditionFailure | undefined> {
  const { writes, response, isEnqueued, canWait, ...effects } = change
  const hasEffects = effects.audit !== undefined || effects.events !== undefined || effects.transitions !== undefined
  const request = actor.kind === 'user' && 'response' in change ? actor.idempotency : undefined
  const check = outboxCheck(actor.organisationId)
  const failure = await transactWithRights(actor, [
    ...writes,
    ...(hasEffects ? [outboxWrite(actor, effects, { due: {} }), ...check.writes] : []),
    ...(request && actor.kind === 'user'
      ? [storeResponseWrite(actor, request, { status: request.status, body: response })]
      : []),
  ])
  if (failure !== undefined) return failure
  if (request) request.isStored = true
  if (!hasEffects) return undefined
  check.confirm()
  await failpoint('commit.written')
  if (isEnqueued !== true) await (canWait ? enqueueProjectionsSoon : enqueueProjections)(actor.organisationId)
  return undefined
}

/**
 * If a check fails or collides, a read decides, because the user may have changed without a loss of rights. A read
 * cannot collide, so that one session can submit many jobs at once.
 */
async function transactWithRights(actor: Actor, writes: readonly WriteItem[]): Promise<ConditionFailure | undefined> {
  const rights = actor.kind === 'user' && actor.rights?.isConfirmed !== true ? actor.rights : undefined
  if (actor.kind !== 'user' || rights === undefined) return transact(writes)
  const checks = [
    check(keys.user(actor.organisationId, actor.userId), {
      version: unchangedCondition(rights.userVersion || undefined),
      id: { is: actor.userId },
    }),
    check(keys.session(actor.sessionId), { id: { is: actor.sessionId }, revokedAtMs: { absent: true } }),
  ]
  const failure = await transact([...checks, ...writes], { isTentative: true })
  if (failure === undefined) return undefined
  if (failure.index >= checks.length) return { ...failure, index: failure.index - checks.length }
  await rights.confirm()
  return transact(writes)
}

/**
 * Reads items, and confirms the rights of the caller's session in the same call, so that a commit need not check them.
 */
export const readWithRights = ({ rights }: Caller, itemKeys: readonly keys.Key[]): Promise<(Item | undefined)[]> =>
  rights === undefined || rights.isConfirmed ? getConsistent(itemKeys) : rights.confirm(itemKeys)

const identityOf = (actor: Actor) => {
  if (actor.kind === 'system') return { kind: actor.kind, id: 'system' }
  if (actor.kind === 'relay') return { kind: actor.kind, id: actor.relayId }
  return { kind: actor.kind, id: actor.userId, ...(actor.tokenId !== undefined && { tokenId: actor.tokenId }) }
}

/** By default, the record has its own due time for the sweep; `commit` uses the check of the whole outbox instead. */
export function outboxWrite(
  actor: Actor,
  { audit, events = [], transitions = [], sweep, id = newId('evt') }: Effects,
  { due = keys.dueIndexKeys(id, now() + outboxRetryMs) }: { due?: Item } = {},
): WriteItem {
  const body: z.infer<typeof RecordBody> = {
    actor: identityOf(actor),
    ...('address' in actor && actor.address !== undefined && { address: actor.address }),
    traceId: currentTraceId(),
    atMs: now(),
    ...(audit && { audit: { detail: '', ...audit } }),
    events: [...events],
    transitions: transitionsWithCounts(transitions),
    ...(sweep && { sweep }),
  }
  const { organisationId } = actor
  return create(keys.outbox(organisationId, id), { record: storedBody(body), ...due })
}
