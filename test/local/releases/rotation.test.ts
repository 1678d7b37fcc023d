import { now, shiftClock } from '@platform/core/clock'
import { FunctionError, FunctionTimeout } from '@platform/local/functions/errors'
import { createTrafficSplit, type Version } from '@platform/local/releases/traffic-split'
import { expect, test } from 'vitest'

/** A version whose functions answer its name, or wait for what the event names. */
function version(name: string) {
  const waiting = new Map<unknown, PromiseWithResolvers<string>>()
  const closed: string[] = []
  const own: Version & { finish: (event: string) => void; closed: string[] } = {
    release: { version: name, digest: `sha256:${name}` },
    pool: {
      invoke: async (_functionName, event) => {
        if (event === undefined) return name
        const wait = Promise.withResolvers<string>()
        waiting.set(event, wait)
        return wait.promise
      },
      close: async () => void closed.push(name),
    },
    finish: (event) => waiting.get(event)?.resolve(name),
    closed,
  }
  return own
}

function rotationOf(first: Version) {
  const gone: string[] = []
  return { ...createTrafficSplit(first, (release) => gone.push(release.version)), gone }
}

const timesNew = async (rotation: ReturnType<typeof rotationOf>, count: number, functionName = 'jobs') => {
  const answers = await Promise.all(Array.from({ length: count }, () => rotation.invoke(functionName, undefined)))
  return answers.filter((answer) => answer === 'new').length
}

test.for([
  [0, 0],
  [10, 1],
  [50, 5],
  [100, 10],
] as const)('of any ten invocations of a function %i percent are exactly %i', async ([share, expected]) => {
  const rotation = rotationOf(version('old'))
  rotation.stage(version('new'))
  rotation.shift(share)
  for (let round = 0; round < 20; round++) {
    expect(await timesNew(rotation, 10)).toBe(expected)
    // One in between moves the window: it holds for any ten that follow each other.
    await Promise.all(Array.from({ length: 10 }, () => rotation.invoke('other', undefined)))
  }
})

test('functions that are called in turn get their share each', async () => {
  const rotation = rotationOf(version('old'))
  rotation.stage(version('new'))
  rotation.shift(10)
  const counts = new Map<string, number>()
  for (let turn = 0; turn < 100; turn++) {
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      if ((await rotation.invoke(name, undefined)) === 'new') counts.set(name, (counts.get(name) ?? 0) + 1)
    }
  }
  expect(Object.fromEntries(counts)).toEqual({ a: 10, b: 10, c: 10, d: 10, e: 10 })
})

test('the portal is not divided: its page and what that names are of one version', async () => {
  const rotation = rotationOf(version('old'))
  rotation.stage(version('new'))
  for (const [share, expected] of [
    [10, 0],
    [50, 0],
    [100, 20],
    [0, 0],
  ] as const) {
    rotation.shift(share)
    expect(await timesNew(rotation, 20, 'portal')).toBe(expected)
  }
  rotation.shift(100)
  rotation.commit()
  expect(await timesNew(rotation, 20, 'portal')).toBe(20)
})

test('what is staged gets nothing before it is given a share, and nothing once it is taken back', async () => {
  const rotation = rotationOf(version('old'))
  rotation.stage(version('new'))
  expect(await timesNew(rotation, 100)).toBe(0)
  rotation.shift(100)
  expect(await timesNew(rotation, 100)).toBe(100)
  rotation.revert()
  expect(await timesNew(rotation, 100)).toBe(0)
  expect(rotation.current().version).toBe('old')
  // Whatever is staged next starts with nothing again.
  rotation.stage(version('new'))
  expect(await timesNew(rotation, 100)).toBe(0)
})

test('a version that is replaced ends what it has begun, and is closed after the last of it', async () => {
  const [old, next] = [version('old'), version('new')]
  const rotation = rotationOf(old)
  const underWay = [rotation.invoke('jobs', 'first'), rotation.invoke('jobs', 'second')]
  rotation.stage(next)
  rotation.commit()
  expect(await rotation.invoke('jobs', undefined)).toBe('new')
  expect(rotation.leaving().map(({ version: name }) => name)).toEqual(['old'])
  old.finish('first')
  expect(await underWay[0]).toBe('old')
  expect(old.closed).toEqual([])
  old.finish('second')
  expect(await underWay[1]).toBe('old')
  await expect.poll(() => rotation.gone).toEqual(['old'])
  expect(old.closed).toEqual(['old'])
  expect(rotation.leaving()).toEqual([])
  expect(next.closed).toEqual([])
})

test('a call of a staged version by name holds up its end like any other', async () => {
  const next = version('new')
  const rotation = rotationOf(version('old'))
  rotation.stage(next)
  const asked = rotation.invokeOf(next.release)?.('jobs', 'slow')
  rotation.revert()
  expect(rotation.invokeOf(next.release)).toBeUndefined()
  expect(next.closed).toEqual([])
  next.finish('slow')
  expect(await asked).toBe('new')
  expect(next.closed).toEqual(['new'])
})

test('a version that has not gone yet is brought back, and is not closed when its work ends', async () => {
  const old = version('old')
  const rotation = rotationOf(old)
  const underWay = rotation.invoke('jobs', 'slow')
  rotation.stage(version('new'))
  rotation.commit()
  expect(rotation.bringBack(old.release)).toBe(true)
  expect(rotation.bringBack(old.release)).toBe(false)
  old.finish('slow')
  await underWay
  rotation.commit()
  expect(rotation.current().version).toBe('old')
  expect(await rotation.invoke('jobs', undefined)).toBe('old')
  expect(old.closed).toEqual([])
})

test('one that failed leaves nothing behind that keeps its version', async () => {
  const failing: Version = {
    release: { version: 'old' },
    pool: { invoke: () => Promise.reject(new Error('no')), close: async () => undefined },
  }
  const rotation = rotationOf(failing)
  const failed = rotation.invoke('jobs', {})
  rotation.stage(version('new'))
  rotation.commit()
  await expect(failed).rejects.toThrow('no')
  await expect.poll(() => rotation.gone).toEqual(['old'])
})

/** A version that ends each invocation with the error that its event is, or answers. */
const failing = (name: string): Version => ({
  release: { version: name, digest: `sha256:${name}` },
  pool: {
    invoke: async (_functionName, event) => {
      if (event instanceof Error) throw event
      return name
    },
    close: async () => undefined,
  },
})

const thrown = (isTallied = false) =>
  new FunctionError('jobs', { name: 'Error', message: 'broken', stack: '', isTallied })
const ended = (rotation: ReturnType<typeof rotationOf>, error?: Error, functionName = 'jobs') =>
  rotation.invoke(functionName, error).then(
    () => undefined,
    () => undefined,
  )

test('each version is told by itself how many invocations it left without an answer, of whichever function', async () => {
  const [old, next] = [failing('old'), failing('new')]
  const rotation = rotationOf(old)
  const faults = () => [old, next].map(({ release }) => rotation.unanswered(release, 0)?.faults)
  expect(faults()).toEqual([0, undefined])
  await ended(rotation, thrown())
  rotation.stage(next)
  rotation.shift(100)
  await ended(rotation, thrown())
  await ended(rotation, new FunctionTimeout('queue/jobs', 30_000), 'queue/jobs')
  await ended(rotation, new FunctionTimeout('schedule/sweep', 30_000), 'schedule/sweep')
  await ended(rotation)
  expect(faults()).toEqual([1, 3])
  rotation.revert()
  expect(faults()).toEqual([1, undefined])
})

test('what a function has counted itself is not counted again, and a call of a version by name never', async () => {
  const rotation = rotationOf(failing('old'))
  await ended(rotation, thrown(true))
  await expect(rotation.invokeOf(rotation.current())?.('jobs', thrown())).rejects.toThrow('broken')
  expect(rotation.unanswered(rotation.current(), 0)).toEqual({ faults: 0 })
})

test('what was left without an answer is counted from the second that is asked for, for ten minutes', async () => {
  const rotation = rotationOf(failing('old'))
  const since = (ms: number) => rotation.unanswered(rotation.current(), now() - ms)?.faults
  await ended(rotation, thrown())
  shiftClock(300_000)
  await ended(rotation, thrown())
  expect([since(0), since(299_000), since(300_000)]).toEqual([1, 1, 2])
  shiftClock(400_000)
  await ended(rotation, thrown())
  expect(since(1_000_000)).toBe(2)
  shiftClock(-700_000)
})

test('when the oldest request began that has no answer yet is told, but not of functions that may take minutes', async () => {
  const old = version('old')
  const rotation = rotationOf(old)
  const oldestMs = () => rotation.unanswered(old.release, 0)?.oldestMs
  const worker = rotation.invoke('queue/updates', 'update')
  expect(oldestMs()).toBeUndefined()
  const beganMs = now()
  const first = rotation.invoke('jobs', 'first')
  shiftClock(5000)
  const second = rotation.invoke('jobs', 'second')
  expect(oldestMs()).toSatisfy((ms: number) => ms >= beganMs && ms < beganMs + 5000)
  old.finish('first')
  await first
  expect(oldestMs()).toBeGreaterThanOrEqual(beganMs + 5000)
  old.finish('second')
  old.finish('update')
  await Promise.all([second, worker])
  expect(rotation.unanswered(old.release, 0)).toEqual({ faults: 0 })
  shiftClock(-5000)
})

test('closing ends all versions, also those that have work', async () => {
  const [old, next] = [version('old'), version('new')]
  const rotation = rotationOf(old)
  void rotation.invoke('jobs', 'for ever')
  rotation.stage(next)
  rotation.commit()
  await rotation.close()
  expect([...old.closed, ...next.closed]).toEqual(['old', 'new'])
})
