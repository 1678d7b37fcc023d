import { expect, test, vi } from 'vitest'
import { routes } from '@platform/contract/index'
import { apiFunctions } from '@platform/core/updates/function-names'
import { readinessRequest, smokeRequests } from '@platform/worker/updates/smoke'
import { TargetError } from '@platform/worker/updates/target/port'
import { platformFunctions } from './support/feed.ts'
import { type Behaviour, good, MemoryTarget, type TargetCall } from './support/memory-target.ts'
import { attempt, expectAttempt, jobOf, setUpUpdates, advance, countErrors, queueUpdate } from './support/updating.ts'
import { now } from '@platform/core/clock'
import { exceedsErrorBudget } from '@platform/worker/updates/bake'

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
const { newReleases, newUpdate } = await setUpUpdates(feed)

test('probes every function, and requests each API function, before it shifts traffic', async () => {
  const calls: string[] = []
  const { target, update } = await newUpdate()
  target.hook.after = async ({ name, input }) => {
    if (name !== 'invoke' || target.shifts.length > 0) return
    const [, functionName, event]: any = input
    calls.push(event.platformProbe ? `${functionName} probe` : `${functionName} GET ${event.rawPath}`)
  }
  await attempt(update, target.port)
  expect(calls.filter((each) => each.endsWith('probe'))).toEqual(platformFunctions.map((name) => `${name} probe`))
  for (const each of ['health GET /health/ready', 'clusters GET /api/v1/clusters']) {
    expect([each, calls.filter((other) => other === each).length]).toEqual([each, 8])
  }
  expect(calls).toHaveLength(platformFunctions.length + 16)
})

let count = 0
const failHalf =
  (behaviour: Behaviour): Behaviour =>
  (name, event) =>
    event.platformProbe || count++ % 2 === 0 ? behaviour(name, event) : { statusCode: 500 }

const responding =
  (functionName: string, response: unknown) =>
  (version: string): Behaviour =>
  (name, event) =>
    event.platformProbe || name !== functionName ? good(version)(name, event) : response

const brokenBehaviours: [what: string, behaviour: (version: string) => Behaviour, message: RegExp][] = [
  ['responds 500 to every second request', (version) => failHalf(good(version)), /responds 500 to GET \//],
  [
    'is not ready',
    responding('health', { statusCode: 503 }),
    /Function health .+ responds 503 to GET \/health\/ready\./,
  ],
  ['has no health endpoint', responding('health', { statusCode: 404 }), /responds 404 to GET \/health\/ready\./],
  ['returns no gateway response', responding('clusters', 'ok'), /responds 500 to GET \/api\/v1\/clusters\./],
  [
    'crashes at start',
    () => () => Promise.reject(new TargetError('Runtime exited with error: exit status 1')),
    /fails: Runtime exited with error: exit status 1\./,
  ],
  [
    'fails in one function',
    (version) => (name, event) =>
      name === 'queue/batches' ? Promise.reject(new Error('Cannot find module')) : good(version)(name, event),
    /Function queue\/batches .+ fails: Cannot find module\./,
  ],
  ['reports another version', () => good('9.9.9'), /reports version 9\.9\.9\./],
  ['reports no version', () => () => 'ok', /reports no version\./],
]

test.each(brokenBehaviours)('gives no traffic to a release that %s', async (_, behaviour, message) => {
  const { target, update, newer } = await newUpdate()
  target.behaviours.set(newer.version, behaviour(newer.version))
  const output = await expectAttempt(update, target, 'Failed')
  expect(target.shifts).toEqual([])
  expect((await jobOf(update)).steps?.find(({ status }) => status === 'Failed')?.name).toBe('smoke')
  expect(output).toMatch(new RegExp(`^Function [a-z/]+ of version ${newer.version} .+ Version .+ serves\\.$`))
  expect(output).toMatch(message)
})

test('accepts a function that requires a token', async () => {
  const { target, update, newer } = await newUpdate()
  target.behaviours.set(newer.version, responding('clusters', { statusCode: 401 })(newer.version))
  await expectAttempt(update, target, 'Completed')
})

test('has one request for each API function, two of them with an exact status', () => {
  expect(smokeRequests.map(({ functionName }) => functionName).toSorted()).toEqual(apiFunctions.toSorted())
  expect(smokeRequests.filter(({ status }) => status !== undefined)).toEqual([
    readinessRequest,
    { functionName: 'portal', path: '/', status: 200 },
  ])
  expect(readinessRequest).toEqual({ functionName: 'health', path: '/health/ready', status: 200 })
})

test('prefers GET routes that need a sign-in, because they have no effect', () => {
  const pathOf = (name: string) => smokeRequests.find(({ functionName }) => functionName === name)?.path
  expect(['gateway/modules', 'clusters', 'auth', 'updates'].map(pathOf)).toEqual([
    '/api/-',
    '/api/v1/clusters',
    '/api/v1/auth/me',
    '/api/v1/platform/updates/check',
  ])
  // These functions have no GET route that needs a sign-in.
  expect(['setup', 'relay'].map(pathOf)).toEqual(['/api/v1/setup/status', '/api/v1/relay/completions'])
  const endpoints = routes.map(({ function: name, endpoint }) => ({ name, ...endpoint }))
  for (const { functionName, path } of smokeRequests.filter(({ status }) => status === undefined)) {
    const ownEndpoints = endpoints.filter(({ name, method }) => name === functionName && method === 'get')
    const protectedEndpoints = ownEndpoints.filter(({ access }) => access !== 'public')
    const requestedEndpoint = ownEndpoints.find((endpoint) => endpoint.path.replaceAll(/\{\w+\}/g, '-') === path)
    if (protectedEndpoints.length > 0)
      expect([functionName, requestedEndpoint?.access]).not.toEqual([functionName, 'public'])
    if (ownEndpoints.length > 0) expect([functionName, requestedEndpoint?.method]).toEqual([functionName, 'get'])
  }
})

test.each([
  // share, faults, oldVersionFaults, usualFaults, exceeds
  [10, 2, 0, 0, false],
  [10, 3, 0, 0, true],
  [50, 3, 1, 0, true],
  [50, 3, 2, 0, false],
  [100, 3, 0, 0, true],
  // In proportion to the share: 90 errors of the old version at 90 % correspond to 10 errors at 10 %.
  [10, 10, 90, 0, false],
  [10, 20, 90, 0, false],
  [10, 21, 90, 0, true],
  [50, 100, 50, 0, false],
  [50, 101, 50, 0, true],
  // The old version has no traffic; its earlier errors count.
  [100, 20, 0, 10, false],
  [100, 21, 0, 10, true],
  [100, 20, 500, 0, true],
  // The old version has no errors now, but had some before.
  [10, 4, 0, 20, false],
  [10, 5, 0, 20, true],
] as const)(
  'at %i percent, %i errors against %i of the old version, which had %i before, exceed the budget: %s',
  (share, faults, oldVersionFaults, usualFaults, exceeds) => {
    expect(exceedsErrorBudget({ share, faults, oldVersionFaults, usualFaults })).toBe(exceeds)
  },
)

test('bakes for the configured time', async () => {
  const { older, newer } = await newReleases()
  const target = new MemoryTarget(newer)
  let checkCount = 0
  target.hook.before = async ({ name, input: [, functionName, event] }) => {
    const isCheck = name === 'invoke' && functionName === 'health' && !(event as any).platformProbe
    if (isCheck && target.share !== undefined) checkCount++
  }
  await attempt(await queueUpdate({ action: 'rollback', release: older, before: newer }), target.port)
  // At the start, and after one second.
  expect(checkCount).toBe(2)
  expect(target.release).toEqual(older)
})

test('fails a release with more errors than the old version used to have', async () => {
  const { target, update, newer, older } = await newUpdate()
  target.hook.after = async ({ name }) => {
    if (name === 'shift') await countErrors(newer.version, 4)
  }
  await countErrors(older.version, 30)
  await expectAttempt(update, target, 'Failed')
  expect(target.shifts).toEqual([`${newer.version} 10`])
})

test('fails a release that stops responding', async () => {
  const { target, update, newer } = await newUpdate()
  target.hook.after = async ({ name, input }) => {
    if (name === 'shift' && input[1] === 50) target.behaviours.set(newer.version, () => ({ statusCode: 500 }))
  }
  await expectAttempt(update, target, 'Failed')
  expect(target.shifts).toEqual([10, 50].map((share) => `${newer.version} ${share}`))
})

test('accepts errors that both versions have', async () => {
  const { target, update, newer, older } = await newUpdate()
  target.hook.after = async ({ name, input }) => {
    if (name !== 'shift') return
    await countErrors(newer.version, Number(input[1]) / 10)
    await countErrors(older.version, 10 - Number(input[1]) / 10)
  }
  await countErrors(older.version, 3000)
  await expectAttempt(update, target, 'Completed')
})

const slowChecks = async ({ name, input }: TargetCall) => {
  if (name === 'invoke' && input[1] === 'health') advance(5000)
}

test('adds errors that the host counts to those that functions count', async () => {
  const { target, update, newer, older } = await newUpdate()
  let callsToLose = 7
  target.unanswered.set(newer.version, () => ({ faults: callsToLose }))
  target.hook.after = async ({ name }) => {
    if (name !== 'shift') return
    callsToLose += 2
    await countErrors(newer.version, 1)
  }
  const output = await expectAttempt(update, target, 'Failed')
  expect(target.shifts).toEqual([`${newer.version} 10`])
  const oldVersionText = `version ${older.version} 0 times in the same time`
  expect(output.replace(/in \d+ s/, 'in a while')).toBe(
    `Version ${newer.version} failed 3 times in a while at 10 %, ${oldVersionText}. Version ${older.version} serves.`,
  )
})

test('accepts requests that neither version answers, also at 100 percent', async () => {
  const { target, update, newer, older } = await newUpdate()
  const startedMs = now()
  let [ofNew, ofOld] = [0, 0]
  target.unanswered.set(newer.version, () => ({ faults: ofNew }))
  target.unanswered.set(older.version, (sinceMs) => ({ faults: ofOld + (sinceMs < startedMs ? 3000 : 0) }))
  target.hook.after = async ({ name, input }) => {
    if (name !== 'shift') return
    ofNew += Number(input[1]) / 10
    ofOld += 10 - Number(input[1]) / 10
  }
  await expectAttempt(update, target, 'Completed')
})

test('keeps a share until requests in flight are answered, and fails when they time out', async () => {
  const { target, update, newer } = await newUpdate()
  let beganMs: number | undefined
  target.hook.before = slowChecks
  target.hook.after = async ({ name }) => {
    if (name === 'shift') beganMs ??= now()
  }
  target.unanswered.set(newer.version, () => {
    if (beganMs === undefined) return { faults: 0 }
    return now() < beganMs + 30_000 ? { faults: 0, oldestMs: beganMs } : { faults: 3 }
  })
  await expectAttempt(update, target, 'Failed')
  expect(target.shifts).toEqual([`${newer.version} 10`])
})

test('limits the wait, and does not wait for requests that began after the bake time', async () => {
  const { target, update, newer } = await newUpdate()
  const bakedMs: number[] = []
  let [share, shiftedMs] = [0, 0]
  target.hook.before = slowChecks
  target.hook.after = async ({ name, input }) => {
    if (name === 'shift' || name === 'commit') {
      if (share > 0) bakedMs.push(now() - shiftedMs)
      ;[share, shiftedMs] = [Number(input[1]), now()]
    }
  }
  // At 10 percent, one request never ends. Later, the oldest unanswered request has always just begun.
  target.unanswered.set(newer.version, () => ({ faults: 0, oldestMs: share === 10 ? shiftedMs : now() }))
  await expectAttempt(update, target, 'Completed')
  const [atTen = 0, ...others] = bakedMs
  expect(atTen).toBeGreaterThan(30_000)
  expect(atTen).toBeLessThan(60_000)
  expect(Math.max(...others)).toBeLessThan(25_000)
})
