import { TransactionCanceledException, TransactionConflictException } from '@aws-sdk/client-dynamodb'
import { client, create, get, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { afterEach, expect, test } from 'vitest'

/** Writes that meet a transaction of somebody else, as the store answers them. */

const key = (name: string) => ({ pk: `COLLISION#${name}`, sk: 'ITEM' })

/** What the next commands of a kind end with; `isDone` says whether they reach the store before. */
let coming: { command: string; left: number; error: () => Error; isDone: boolean } | undefined

client.middlewareStack.add(
  (next, context) => async (args) => {
    if (coming?.command !== context.commandName || coming?.left === 0) return next(args)
    const { error, isDone } = coming!
    coming!.left--
    if (isDone) await next(args)
    throw error()
  },
  { step: 'initialize', name: 'collisions' },
)

const colliding = (command: string, left: number, error: () => Error, isDone = false): void => {
  coming = { command, left, error, isDone }
}

afterEach(() => {
  expect(coming?.left === 0 || (coming?.left ?? 0) > 50).toBe(true)
  coming = undefined
})

const conflict = () => new TransactionConflictException({ message: 'ongoing', $metadata: {} })
const cancelled = (attempts: number) => () =>
  new TransactionCanceledException({
    message: 'cancelled',
    $metadata: { attempts },
    CancellationReasons: [{ Code: 'TransactionConflict' }],
  })

test('a single write that meets a transaction is done when that is over', async () => {
  colliding('UpdateItemCommand', 3, conflict)
  expect(await update(key('single'), { add: { count: 1 } })).toMatchObject({ count: 1 })
})

test('a single write that meets transactions again and again says that the store is busy', async () => {
  colliding('UpdateItemCommand', 100, conflict)
  await expect(update(key('busy'), { add: { count: 1 } })).rejects.toMatchObject({ code: 'database_unavailable' })
})

test('a transaction whose answer was lost, and whose repeat collides, has happened once', async () => {
  colliding('TransactWriteItemsCommand', 1, cancelled(2), true)
  expect(await transact([create(key('lost'), { count: 1 })])).toBe(undefined)
  expect(await get(key('lost'))).toMatchObject({ count: 1 })
})

test('a transaction that collides at its first try is tried as another one', async () => {
  colliding('TransactWriteItemsCommand', 2, cancelled(1))
  expect(await transact([create(key('first'), { count: 1 })])).toBe(undefined)
  expect(await transact([create(key('first'), { count: 1 })])).toMatchObject({ index: 0 })
})
