import {
  TransactionCanceledException,
  TransactionConflictException,
  TransactionInProgressException,
} from '@aws-sdk/client-dynamodb'
import { emptyOffsets, seekOffset, withoutRecord, withRecord } from '@platform/core/db/offset-index'
import { client, create, get, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'

describe('collisions with transactions', () => {
  const key = (name: string) => ({ pk: `COLLISION#${name}`, sk: 'ITEM' })

  /** Fails the next `count` commands of a kind; if `isApplied` is true, the commands take effect first. */
  let failure: { command: string; count: number; error: () => Error; isApplied: boolean } | undefined

  client.middlewareStack.add(
    (next, context) => async (args) => {
      if (failure === undefined || failure.command !== context.commandName || failure.count === 0) return next(args)
      failure.count--
      if (failure.isApplied) await next(args)
      throw failure.error()
    },
    { step: 'initialize', name: 'collisions' },
  )

  const failNext = (command: string, count: number, error: () => Error, isApplied = false): void => {
    failure = { command, count, error, isApplied }
  }
  afterEach(() => (failure = undefined))

  const conflict = () => new TransactionConflictException({ message: 'ongoing', $metadata: {} })
  const cancelled =
    (attempts: number, Code = 'TransactionConflict') =>
    () =>
      new TransactionCanceledException({
        message: 'cancelled',
        $metadata: { attempts },
        CancellationReasons: [{ Code }],
      })

  test('are retried for a single update', async () => {
    failNext('UpdateItemCommand', 3, conflict)
    expect(await update(key('single'), { add: { count: 1 } })).toMatchObject({ count: 1 })
    expect(failure?.count).toBe(0)
  })

  test('fail an update with conflict if they persist', async () => {
    failNext('UpdateItemCommand', 100, conflict)
    await expect(update(key('busy'), { add: { count: 1 } })).rejects.toMatchObject({ code: 'conflict' })
  })

  const inProgress = () => new TransactionInProgressException({ message: 'in progress', $metadata: {} })

  test.each([
    ['conflict', cancelled(1)],
    ['database_unavailable', cancelled(2)],
    ['database_unavailable', inProgress],
    ['database_unavailable', cancelled(1, 'ThrottlingError')],
  ])('that persist fail a transaction with %s', async (code, error) => {
    failNext('TransactWriteItemsCommand', 100, error)
    await expect(transact([create(key('never'), {})])).rejects.toMatchObject({ code })
  })

  test('after a lost response do not repeat the transaction', async () => {
    failNext('TransactWriteItemsCommand', 1, cancelled(2), true)
    expect(await transact([create(key('lost'), { count: 1 })])).toBe(undefined)
    expect(failure?.count).toBe(0)
    expect(await get(key('lost'))).toMatchObject({ count: 1 })
  })

  test('at the first attempt retry with another token', async () => {
    failNext('TransactWriteItemsCommand', 2, cancelled(1))
    expect(await transact([create(key('first'), { count: 1 })])).toBe(undefined)
    expect(failure?.count).toBe(0)
    expect(await transact([create(key('first'), { count: 1 })])).toMatchObject({ index: 0 })
  })
})

describe('the offset index', () => {
  const startMs = 1_800_000_000_000
  const descending = (times: number[]) => times.toSorted((a, b) => b - a)

  const readPage = (times: number[], index: ReturnType<typeof emptyOffsets>, offset: number, size: number) => {
    const position = seekOffset(index, offset)
    if (position === undefined) return []
    const { beforeMs = Number.POSITIVE_INFINITY, skippedCount } = position
    return descending(times.filter((time) => time < beforeMs)).slice(skippedCount, skippedCount + size)
  }

  test('finds every page after any history of insertions and removals', () => {
    const steps = fc.array(fc.oneof({ weight: 3, arbitrary: fc.constant(-1) }, fc.nat(400)), { maxLength: 400 })
    fc.assert(
      fc.property(steps, fc.nat(420), fc.integer({ min: 1, max: 100 }), (history, offset, size) => {
        let times: number[] = []
        let index = emptyOffsets()
        for (const [step, removal] of history.entries()) {
          const removedTime = removal >= 0 ? times[removal % Math.max(1, times.length)] : undefined
          if (removedTime === undefined) {
            times = [...times, startMs + step]
            index = withRecord(index, startMs + step)
          } else {
            times = times.filter((time) => time !== removedTime)
            index = withoutRecord(index, removedTime)
          }
        }
        expect(readPage(times, index, offset, size)).toEqual(descending(times).slice(offset, offset + size))
      }),
      { numRuns: 200 },
    )
  })

  test('of 100,000 records takes 14 KB and skips fewer than 50 records', () => {
    let index = emptyOffsets()
    for (let record = 0; record < 100_000; record++) index = withRecord(index, startMs + record)
    expect(index.length).toBeLessThanOrEqual(14_000)
    expect(seekOffset(index, 54_321)?.skippedCount).toBeLessThan(50)
    expect(seekOffset(index, 100_000)).toBeUndefined()
  })
})
