import { createRouter } from '@platform/local/gateway/routes'
import { FunctionTimeout } from '@platform/local/functions/errors'
import { createMetrics } from '@platform/local/metrics/metrics'
import { expect, test } from 'vitest'
import { parseMetrics, valueOf } from '../../support/prometheus.ts'
import { sampleRoutes } from '../gateway/support.ts'

const read = async (metrics: ReturnType<typeof createMetrics>) => parseMetrics((await metrics.read()).text)
const ours = (metrics: Map<string, { samples: unknown[] }>): number =>
  [...metrics].reduce((sum, [name, { samples }]) => sum + (name.startsWith('platform_') ? samples.length : 0), 0)

test('ten thousand paths that nobody has heard of make no more than one more series of each metric', async () => {
  const metrics = createMetrics(2)
  const route = createRouter(sampleRoutes, 'fallback')
  const serve = (method: string, path: string, status: number) => {
    const watch = metrics.begin()
    watch.routed(route(method, path))
    watch.done(status)
  }
  serve('GET', '/nowhere', 404)
  const before = ours(await read(metrics))
  for (let index = 0; index < 10_000; index++) serve('GET', `/${crypto.randomUUID()}/"\\${index}`, 404)
  const after = await read(metrics)
  expect(ours(after)).toBe(before)
  expect(valueOf(after, 'platform_http_requests_total', { route: '$default', status: '4xx' })).toBe(10_001)

  for (let index = 0; index < 10_000; index++) serve('GET', `/things/${index}`, 200)
  const [first] = (await read(metrics)).get('platform_http_requests_total')?.samples.slice(-1) ?? []
  expect(first).toMatchObject({ labels: { route: 'GET /things/{id}', status: '2xx' }, value: 10_000 })
})

test('a request whose route is never found counts with the unknown paths', async () => {
  const metrics = createMetrics(2)
  metrics.begin().done(400)
  const labels = { function: 'gateway', route: '$default', status: '4xx' }
  expect(valueOf(await read(metrics), 'platform_http_requests_total', labels)).toBe(1)
})

test('what a caller is held for is no time that the platform took', async () => {
  const metrics = createMetrics(2)
  const watch = metrics.begin()
  watch.answered()
  const held = performance.now() + 60
  while (performance.now() < held);
  watch.done(200)
  expect(valueOf(await read(metrics), 'platform_http_request_duration_seconds_sum')).toBeLessThan(0.05)
})

test.for([
  ['all done', { batchItemFailures: [] }, { done: 3, failed: 0 }],
  ['nothing answered', undefined, { done: 3, failed: 0 }],
  ['two failed', { batchItemFailures: [{ itemIdentifier: 'a' }, { itemIdentifier: 'b' }] }, { done: 1, failed: 2 }],
  ['more named than there were', { batchItemFailures: [1, 2, 3, 4] }, { done: 0, failed: 3 }],
] as const)('messages count one by one: %s', async ([, result, expected]) => {
  const metrics = createMetrics(2)
  const invoke = metrics.watched(async () => result)
  await invoke('queue/jobs', { Records: [1, 2, 3] })
  const text = await read(metrics)
  for (const [outcome, count] of Object.entries(expected))
    expect(valueOf(text, 'platform_messages_total', { queue: 'jobs', outcome })).toBe(count)
})

test('a function that throws or is late counts as failed, its messages with it, and its error is passed on', async () => {
  const metrics = createMetrics(2)
  const late = new FunctionTimeout('queue/jobs', 1)
  const invoke = metrics.watched((name) => Promise.reject(name === 'queue/jobs' ? late : new Error('broken')))
  await expect(invoke('queue/jobs', { Records: [1, 2] })).rejects.toBe(late)
  await expect(invoke('schedule/sweep', {})).rejects.toThrow('broken')
  const text = await read(metrics)
  expect(valueOf(text, 'platform_function_failures_total')).toBe(2)
  expect(valueOf(text, 'platform_function_timeouts_total', { function: 'queue/jobs' })).toBe(1)
  expect(valueOf(text, 'platform_messages_total', { queue: 'jobs', outcome: 'failed' })).toBe(2)
  expect(valueOf(text, 'platform_schedule_runs_total', { schedule: 'sweep', outcome: 'failed' })).toBe(1)
  expect(valueOf(text, 'platform_schedule_last_success_timestamp_seconds')).toBe(0)
  expect(valueOf(text, 'platform_functions_in_flight')).toBe(0)
})

test('watching a request costs less than a twentieth of a millisecond', async () => {
  const metrics = createMetrics(2)
  const route = createRouter(sampleRoutes, 'fallback')
  const watchOne = () => {
    const watch = metrics.begin()
    watch.routed(route('GET', '/things/1'))
    watch.answered()
    watch.done(200)
  }
  for (let index = 0; index < 2000; index++) watchOne()
  const rounds = Array.from({ length: 10 }, () => {
    const startedAtMs = performance.now()
    for (let index = 0; index < 1000; index++) watchOne()
    return (performance.now() - startedAtMs) / 1000
  })
  expect(Math.min(...rounds)).toBeLessThan(0.05)
})
