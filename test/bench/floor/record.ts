import * as keys from '@platform/core/db/keys'
import { randomBytes } from 'node:crypto'
import type { Claims } from './access-token.ts'
import { type Attributes, keyOf, TableName } from './store.ts'

/** The record that a change leaves in the outbox, by hand. */

const announceAgainMs = 30_000

/** What a record tells of a change. */
export interface Told {
  audit: { action: string; resource: string; detail: string }
  event: { name: string; subject: string; data: object }
  moves: readonly object[]
}

export const newId = (prefix: string): string => `${prefix}_0${Date.now()}${randomBytes(6).toString('hex')}`

const returnOld = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const

/** The write of an item that is not there yet. */
export const putNew = (Item: Attributes) => ({
  Put: { TableName, Item, ConditionExpression: 'attribute_not_exists(pk)', ...returnOld },
})

/** The write of the record of what a user did. */
export function putRecord({ org, sub }: Claims, address: string, { audit, event, moves }: Told) {
  const id = newId('evt')
  const record = JSON.stringify({
    actor: { kind: 'user', id: sub },
    address,
    traceId: randomBytes(16).toString('hex'),
    atMs: Date.now(),
    audit,
    events: [{ ...event, id }],
    moves,
  })
  const { duepk, duesk } = keys.due(id, Date.now() + announceAgainMs)
  return putNew({
    ...keyOf(keys.outbox(org, id)),
    id: { S: id },
    record: { S: record },
    duepk: { S: duepk },
    duesk: { S: duesk },
  })
}
