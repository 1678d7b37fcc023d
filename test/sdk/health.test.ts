import { type Health, type HealthTag } from '@platform/modules'
import { expect, test, vi } from 'vitest'
import { startedInstance } from '../support/sdk-instance.ts'

const check = (tag: HealthTag | undefined, result: () => unknown) => ({
  tags: tag === undefined ? [] : [tag],
  check: result as () => Health,
})
const says = (status: Health['status']) => () => ({ status })

test.for([
  ['critical', 'Unhealthy', 'Unhealthy', 503],
  ['critical', 'Degraded', 'Degraded', 200],
  ['degradable', 'Unhealthy', 'Degraded', 200],
  ['degradable', 'Degraded', 'Degraded', 200],
  ['degradable', 'Healthy', 'Healthy', 200],
  ['informational', 'Unhealthy', 'Healthy', 200],
  [undefined, 'Unhealthy', 'Healthy', 200],
] as const)('a %s check that is %s makes the module %s', async ([tag, found, aggregate, httpStatus]) => {
  const { ask } = await startedInstance({
    healthChecks: { good: check('critical', says('Healthy')), other: check(tag, says(found)) },
  })
  const response = await ask('GET', '/health')
  expect([response.status, await response.json()]).toEqual([
    httpStatus,
    {
      status: aggregate,
      state: 'Started',
      checks: [
        { name: 'good', status: 'Healthy' },
        { name: 'other', status: found },
      ],
    },
  ])
})

test('a module without checks is healthy while it runs', async () => {
  const { ask } = await startedInstance({})
  expect((await ask('GET', '/health')).status).toBe(200)
})

const bad: [string, () => unknown, string][] = [
  ['throws', () => Promise.reject(new Error('No database.')), 'No database.'],
  ['answers nothing', () => undefined, 'The check returned no status.'],
  ['answers a status that there is not', () => ({ status: 'Fine' }), 'The check returned no status.'],
]

test.for(bad)('a check that %s is Unhealthy, and says why', async ([, result, description]) => {
  const { ask, control } = await startedInstance({ healthChecks: { deep: check('critical', result) } })
  const expected = { status: 503, body: { status: 'Unhealthy', description } }
  expect(await control('GET', '/health/deep')).toEqual(expected)
  const response = await ask('GET', '/health/deep')
  expect({ status: response.status, body: await response.json() }).toEqual(expected)
})

test('a check that never ends is Unhealthy after four seconds', async () => {
  vi.useFakeTimers()
  const { control } = await startedInstance({ healthChecks: { deep: check('critical', () => new Promise(() => {})) } })
  const answer: Promise<{ body: unknown }> = control('GET', '/health/deep')
  await vi.advanceTimersByTimeAsync(3999)
  expect(await Promise.race([answer, Promise.resolve('waiting')])).toBe('waiting')
  await vi.advanceTimersByTimeAsync(1)
  vi.useRealTimers()
  expect((await answer).body).toEqual({ status: 'Unhealthy', description: 'The check deep took longer than 4000 ms.' })
})

test('a check that many ask for at once runs once', async () => {
  let count = 0
  const gate = Promise.withResolvers<Health>()
  const { ask } = await startedInstance({
    healthChecks: {
      deep: check('critical', () => {
        count += 1
        return gate.promise
      }),
    },
  })
  const answers = [ask('GET', '/health'), ask('GET', '/health/deep'), ask('GET', '/health')]
  await vi.waitFor(() => expect(count).toBe(1))
  gate.resolve({ status: 'Healthy' })
  for (const answer of answers) expect((await answer).status).toBe(200)
  expect(count).toBe(1)
  await ask('GET', '/health')
  expect(count).toBe(2)
})

test('a description is no longer than the platform keeps', async () => {
  const { control } = await startedInstance({
    healthChecks: { deep: check('critical', () => ({ status: 'Degraded', description: 'x'.repeat(600) })) },
  })
  expect((await control('GET', '/health/deep')).body.description).toHaveLength(500)
})

test.for(['nothing', 'toString', '__proto__'])('the check %s is not found', async (name) => {
  const { ask, control } = await startedInstance({ healthChecks: { deep: check('critical', says('Healthy')) } })
  expect((await control('GET', `/health/${name}`)).status).toBe(404)
  expect((await ask('GET', `/health/${name}`)).status).toBe(404)
})
