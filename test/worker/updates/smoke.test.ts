import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { TargetError } from '@platform/worker/updates/target/port'
import { started } from '../../support/world.ts'
import { updatesFrom } from './support/applying.ts'
import { names } from './support/feed.ts'
import { type Behaviour, good } from './support/memory-target.ts'
import { clockBack, expectWhole, jobOf, work } from './support/updating.ts'

/** What a release is asked before anybody else asks it, and what it must not answer. */

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
afterAll(feed.close)
afterEach(clockBack)
await started()
const { applying } = updatesFrom(feed)

test('every function is asked which version it is of, and each that serves the API for something, before anybody else asks', async () => {
  const calls: string[] = []
  const { target, accepted } = await applying()
  target.hook.after = async ({ name, input }) => {
    if (name !== 'invoke' || target.shares.length > 0) return
    const [, functionName, event]: any = input
    calls.push(event.platformProbe ? `${functionName} probe` : `${functionName} GET ${event.rawPath}`)
  }
  await work(accepted, target.port)
  expect(calls.filter((each) => each.endsWith('probe'))).toEqual(names.map((name) => `${name} probe`))
  for (const each of ['health GET /health/ready', 'clusters GET /api/v1/clusters']) {
    expect([each, calls.filter((other) => other === each).length]).toEqual([each, 8])
  }
  expect(calls).toHaveLength(names.length + 16)
})

let turn = 0
const half =
  (answer: Behaviour): Behaviour =>
  (name, event) =>
    event.platformProbe || turn++ % 2 === 0 ? answer(name, event) : { statusCode: 500 }

/** Fails at what it is asked, not at its probe; `answer` is what one of its functions says. */
const asked =
  (functionName: string, answer: unknown) =>
  (version: string): Behaviour =>
  (name, event) =>
    event.platformProbe || name !== functionName ? good(version)(name, event) : answer

const broken: [what: string, behaviour: (version: string) => Behaviour, told: RegExp][] = [
  ['answers 500 to half of what it is asked', (version) => half(good(version)), /answers 500 to GET \//],
  ['is not ready', asked('health', { statusCode: 503 }), /Function health .+ answers 503 to GET \/health\/ready\./],
  ['is nowhere where it says how it is', asked('health', { statusCode: 404 }), /answers 404 to GET \/health\/ready\./],
  ['answers with nothing that a gateway knows', asked('clusters', 'ok'), /answers 500 to GET \/api\/v1\/clusters\./],
  [
    'crashes when it begins',
    () => () => Promise.reject(new TargetError('Runtime exited with error: exit status 1')),
    /fails: Runtime exited with error: exit status 1\./,
  ],
  [
    'fails in one function only',
    (version) => (name, event) =>
      name === 'queue/jobs' ? Promise.reject(new Error('Cannot find module')) : good(version)(name, event),
    /Function queue\/jobs .+ fails: Cannot find module\./,
  ],
  ['says that it is another version', () => good('9.9.9'), /says that it is of version 9\.9\.9\./],
  ['answers what is no answer', () => () => 'ok', /does not say its version\./],
]

test.each(broken)('a release that %s never gets a request of anybody', async (_, behaviour, told) => {
  const { target, accepted, newer } = await applying()
  target.behaviours.set(newer.version, behaviour(newer.version))
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Failed')
  expect(target.shares).toEqual([])
  const { steps, result } = await jobOf(accepted)
  expect(steps?.find(({ status }) => status === 'Failed')?.name).toBe('smoke')
  expect(result?.output).toMatch(new RegExp(`^Function [a-z/]+ of version ${newer.version} .+ Version .+ serves\\.$`))
  expect(result?.output).toMatch(told)
})

test('a function that asks for a token is as good as one that answers', async () => {
  const { target, accepted, newer } = await applying()
  target.behaviours.set(newer.version, asked('clusters', { statusCode: 401 })(newer.version))
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Completed')
})
