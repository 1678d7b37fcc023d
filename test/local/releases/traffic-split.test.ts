import { now, shiftClock } from '@platform/core/clock'
import { FunctionError, FunctionTimeout } from '@platform/local/functions/errors'
import { createTrafficSplit, type Version } from '@platform/local/releases/traffic-split'
import { expect, test } from 'vitest'

/**
 * A version whose functions throw an event that is an Error, wait for `finish` if the event is a string, and otherwise
 * return the name of the version.
 */
function versionOf(name: string) {
  const waitingCalls = new Map<string, PromiseWithResolvers<string>>()
  const closedEvents: string[] = []
  const version: Version & { finish: (event: string) => void; closed: string[] } = {
    release: { version: name, digest: `sha256:${name}` },
    pool: {
      invoke: async (_functionName, event) => {
        if (event instanceof Error) throw event
        if (typeof event !== 'string') return name
        const invocation = Promise.withResolvers<string>()
        waitingCalls.set(event, invocation)
        return invocation.promise
      },
      close: async () => void closedEvents.push(name),
    },
    finish: (event) => waitingCalls.get(event)?.resolve(name),
    closed: closedEvents,
  }
  return version
}

function start() {
  const [oldVersion, nextVersion] = [versionOf('old'), versionOf('new')]
  const drainedNames: string[] = []
  const split = createTrafficSplit(oldVersion, (release) => drainedNames.push(release.version))
  const countNew = async (count: number, functionName = 'jobs') => {
    const results = await Promise.all(Array.from({ length: count }, () => split.invoke(functionName, undefined)))
    return results.filter((result) => result === 'new').length
  }
  const settle = async (event?: Error, functionName = 'jobs') => {
    await Promise.allSettled([split.invoke(functionName, event)])
  }
  return { ...split, old: oldVersion, next: nextVersion, drained: drainedNames, countNew, settle }
}

test.for([
  [0, 0],
  [10, 1],
  [50, 5],
  [100, 10],
] as const)('a share of %i percent gets exactly %i of any ten invocations of a function', async ([share, expected]) => {
  const split = start()
  split.stage(split.next)
  split.shift(share)
  for (let round = 0; round < 20; round++) {
    expect(await split.countNew(10)).toBe(expected)
    // Invocations of another function do not affect the share of this function.
    await Promise.all(Array.from({ length: 10 }, () => split.invoke('other', undefined)))
  }
})

test('the portal shifts at 100 %, so its page and assets have one version', async () => {
  const split = start()
  split.stage(split.next)
  for (const share of [10, 50, 100, 0] as const) {
    split.shift(share)
    expect(await split.countNew(20, 'portal')).toBe(share === 100 ? 20 : 0)
  }
  split.shift(100)
  split.commit()
  expect(await split.countNew(20, 'portal')).toBe(20)
})

test('a staged version gets no traffic before a shift, nor after a revert', async () => {
  const split = start()
  split.stage(split.next)
  expect(await split.countNew(100)).toBe(0)
  split.shift(100)
  expect(await split.countNew(100)).toBe(100)
  split.revert()
  expect(await split.countNew(100)).toBe(0)
  expect(split.currentRelease().version).toBe('old')
  split.stage(versionOf('new'))
  expect(await split.countNew(100)).toBe(0)
})

test('a replaced version completes its invocations, and is closed after the last', async () => {
  const split = start()
  const { old, next } = split
  await split.settle(new Error('no'))
  const pending = [split.invoke('jobs', 'first'), split.invoke('jobs', 'second')]
  split.stage(next)
  split.commit()
  expect(await split.invoke('jobs', undefined)).toBe('new')
  expect(split.drainingReleases()).toEqual([old.release])
  old.finish('first')
  expect(await pending[0]).toBe('old')
  expect(old.closed).toEqual([])
  old.finish('second')
  expect(await pending[1]).toBe('old')
  await expect.poll(() => split.drained).toEqual(['old'])
  expect([old.closed, split.drainingReleases(), next.closed]).toEqual([['old'], [], []])
})

test('a direct invocation of a staged version delays its closing', async () => {
  const split = start()
  const { next } = split
  split.stage(next)
  const pending = split.invokeOf(next.release)?.('jobs', 'slow')
  split.revert()
  expect(split.invokeOf(next.release)).toBeUndefined()
  expect(next.closed).toEqual([])
  next.finish('slow')
  expect(await pending).toBe('new')
  expect(next.closed).toEqual(['new'])
})

test('a draining version can be staged again, and is then not closed', async () => {
  const split = start()
  const { old } = split
  const pending = split.invoke('jobs', 'slow')
  split.stage(split.next)
  split.commit()
  expect([split.restage(old.release), split.restage(old.release)]).toEqual([true, false])
  old.finish('slow')
  await pending
  split.commit()
  expect(await split.invoke('jobs', undefined)).toBe('old')
  expect(old.closed).toEqual([])
})

const thrownError = (isCounted = false) =>
  new FunctionError('jobs', { name: 'Error', message: 'broken', stack: '', isCounted })

test('counts the failed invocations of each version, of all functions', async () => {
  const split = start()
  const faults = () => [split.old, split.next].map(({ release }) => split.unanswered(release, 0)?.faults)
  expect(faults()).toEqual([0, undefined])
  await split.settle(thrownError())
  split.stage(split.next)
  split.shift(100)
  await split.settle(thrownError())
  await split.settle(new FunctionTimeout('queue/batches', 30_000), 'queue/batches')
  await split.settle(new FunctionTimeout('schedule/sweep', 30_000), 'schedule/sweep')
  await split.settle()
  expect(faults()).toEqual([1, 3])
  split.revert()
  expect(faults()).toEqual([1, undefined])
})

test('does not count an error that the function has counted, nor a direct invocation', async () => {
  const split = start()
  await split.settle(thrownError(true))
  await expect(split.invokeOf(split.currentRelease())?.('jobs', thrownError())).rejects.toThrow('broken')
  expect(split.unanswered(split.currentRelease(), 0)).toEqual({ faults: 0 })
})

test('counts failures since a second, for ten minutes', async () => {
  const split = start()
  const faultsSince = (ms: number) => split.unanswered(split.currentRelease(), now() - ms)?.faults
  await split.settle(thrownError())
  shiftClock(300_000)
  await split.settle(thrownError())
  expect([faultsSince(0), faultsSince(299_000), faultsSince(300_000)]).toEqual([1, 1, 2])
  shiftClock(400_000)
  await split.settle(thrownError())
  expect(faultsSince(1_000_000)).toBe(2)
  shiftClock(-700_000)
})

test('reports the start of the oldest pending request, without functions that may run for minutes', async () => {
  const split = start()
  const { old } = split
  const oldestMs = () => split.unanswered(old.release, 0)?.oldestMs
  const worker = split.invoke('queue/updates', 'update')
  expect(oldestMs()).toBeUndefined()
  const startedMs = now()
  const firstCall = split.invoke('jobs', 'first')
  shiftClock(5000)
  const secondCall = split.invoke('jobs', 'second')
  expect(oldestMs()).toSatisfy((ms: number) => ms >= startedMs && ms < startedMs + 5000)
  old.finish('first')
  await firstCall
  expect(oldestMs()).toBeGreaterThanOrEqual(startedMs + 5000)
  old.finish('second')
  old.finish('update')
  await Promise.all([secondCall, worker])
  expect(split.unanswered(old.release, 0)).toEqual({ faults: 0 })
  shiftClock(-5000)
})

test('closing ends all versions, including busy ones', async () => {
  const split = start()
  void split.invoke('jobs', 'endless')
  split.stage(split.next)
  split.commit()
  await split.close()
  expect([...split.old.closed, ...split.next.closed]).toEqual(['old', 'new'])
})
