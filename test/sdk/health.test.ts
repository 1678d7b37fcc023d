import type { Health, HealthTag } from '@platform/modules'
import { expect, test, vi } from 'vitest'
import { startedInstance } from '../support/sdk-instance.ts'

const check = (tag: HealthTag | undefined, result: () => unknown) => ({
  tags: tag ? [tag] : [],
  check: result as () => Health,
})
const returning = (status: Health['status']) => () => ({ status })

test.for([
  ['critical', 'Unhealthy', 'Unhealthy', 503],
  ['critical', 'Degraded', 'Degraded', 200],
  ['degradable', 'Unhealthy', 'Degraded', 200],
  ['degradable', 'Degraded', 'Degraded', 200],
  ['degradable', 'Healthy', 'Healthy', 200],
  ['informational', 'Unhealthy', 'Healthy', 200],
  [undefined, 'Degraded', 'Degraded', 200],
  [undefined, 'Unhealthy', 'Degraded', 200],
] as const)('a %s check with %s makes the module %s', async ([tag, status, aggregate, httpStatus]) => {
  const { send } = await startedInstance({
    healthChecks: { good: check('critical', returning('Healthy')), other: check(tag, returning(status)) },
  })
  const response = await send('GET', '/health')
  expect(response.status).toBe(httpStatus)
  const checks = [
    { name: 'good', status: 'Healthy' },
    { name: 'other', status },
  ]
  expect(await response.json()).toEqual({ status: aggregate, state: 'Started', checks })
})

const failingChecks: [string, () => unknown, string][] = [
  ['throws', () => Promise.reject(new Error('No database.')), 'No database.'],
  ['returns nothing', () => undefined, 'The check returned no status.'],
  ['returns an unknown status', () => ({ status: 'Fine' }), 'The check returned no status.'],
]

test.for(failingChecks)('a check that %s is Unhealthy with a description', async ([, result, description]) => {
  const { send, control } = await startedInstance({ healthChecks: { deep: check('critical', result) } })
  const expected = { status: 503, body: { status: 'Unhealthy', description } }
  expect(await control('GET', '/health/deep')).toEqual(expected)
  const response = await send('GET', '/health/deep')
  expect({ status: response.status, body: await response.json() }).toEqual(expected)
})

test('a check is Unhealthy after four seconds', async () => {
  vi.useFakeTimers()
  const { control } = await startedInstance({ healthChecks: { deep: check('critical', () => new Promise(() => {})) } })
  const response: Promise<{ body: unknown }> = control('GET', '/health/deep')
  await vi.advanceTimersByTimeAsync(3999)
  expect(await Promise.race([response, Promise.resolve('waiting')])).toBe('waiting')
  await vi.advanceTimersByTimeAsync(1)
  vi.useRealTimers()
  const description = 'The check deep took longer than 4000 ms.'
  expect((await response).body).toEqual({ status: 'Unhealthy', description })
})

test('concurrent requests of a check share one run', async () => {
  const gate = Promise.withResolvers<Health>()
  const run = vi.fn(() => gate.promise)
  const { send } = await startedInstance({ healthChecks: { deep: check('critical', run) } })
  const responses = [send('GET', '/health'), send('GET', '/health/deep'), send('GET', '/health')]
  await vi.waitFor(() => expect(run).toHaveBeenCalledOnce())
  gate.resolve({ status: 'Healthy' })
  for (const response of responses) expect((await response).status).toBe(200)
  expect(run).toHaveBeenCalledOnce()
  await send('GET', '/health')
  expect(run).toHaveBeenCalledTimes(2)
})

test('truncates a description to 500 characters', async () => {
  const degradedCheck = check('critical', () => ({ status: 'Degraded', description: 'x'.repeat(600) }))
  const { control } = await startedInstance({ healthChecks: { deep: degradedCheck } })
  expect((await control('GET', '/health/deep')).body.description).toHaveLength(500)
})

test.for(['nothing', 'toString', '__proto__'])('returns 404 for the check %s', async (name) => {
  const { send, control } = await startedInstance({ healthChecks: { deep: check('critical', returning('Healthy')) } })
  expect((await control('GET', `/health/${name}`)).status).toBe(404)
  expect((await send('GET', `/health/${name}`)).status).toBe(404)
})
