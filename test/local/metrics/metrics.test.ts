import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { SendMessageCommand } from '@aws-sdk/client-sqs'
import { FunctionTimeout } from '@platform/local/functions/errors'
import { createRouter } from '@platform/local/gateway/routes'
import { createMetrics } from '@platform/local/metrics/metrics'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { parseMetrics, valueOf } from '../../support/prometheus.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { sampleRoutes } from '../gateway/support.ts'
import { type Barrier, startBarrier } from '../support/barrier.ts'
import { platformIn, queueClient } from '../support/platform.ts'

const read = async (metrics: ReturnType<typeof createMetrics>) => parseMetrics((await metrics.read()).text)
const countSeries = (metrics: Map<string, { samples: unknown[] }>): number =>
  [...metrics].reduce((sum, [name, { samples }]) => sum + (name.startsWith('platform_') ? samples.length : 0), 0)

test('unknown paths share one series, as do all ids of a route', async () => {
  const metrics = createMetrics(2)
  const route = createRouter(sampleRoutes, 'fallback')
  const serve = (method: string, path: string, status: number) => {
    const recorder = metrics.begin()
    recorder.setRoute(route(method, path))
    recorder.done(status)
  }
  serve('GET', '/nowhere', 404)
  const countBefore = countSeries(await read(metrics))
  for (let index = 0; index < 1000; index++) serve('GET', `/${crypto.randomUUID()}/"\\${index}`, 404)
  const metricsAfter = await read(metrics)
  expect(countSeries(metricsAfter)).toBe(countBefore)
  expect(valueOf(metricsAfter, 'platform_http_requests_total', { route: '$default', status: '4xx' })).toBe(1001)

  for (let index = 0; index < 1000; index++) serve('GET', `/things/${index}`, 200)
  const [lastSample] = (await read(metrics)).get('platform_http_requests_total')?.samples.slice(-1) ?? []
  expect(lastSample).toMatchObject({ labels: { route: 'GET /things/{id}', status: '2xx' }, value: 1000 })
})

test('a request without a route counts with the unknown paths', async () => {
  const metrics = createMetrics(2)
  metrics.begin().done(400)
  const labels = { function: 'gateway', route: '$default', status: '4xx' }
  expect(valueOf(await read(metrics), 'platform_http_requests_total', labels)).toBe(1)
})

test('the duration of a request excludes the delay of its response', async () => {
  const metrics = createMetrics(2)
  vi.useFakeTimers({ toFake: ['performance'] })
  const recorder = metrics.begin()
  vi.advanceTimersByTime(20)
  recorder.endTiming()
  vi.advanceTimersByTime(60_000)
  recorder.done(200)
  vi.useRealTimers()
  expect(valueOf(await read(metrics), 'platform_http_request_duration_seconds_sum')).toBeCloseTo(0.02)
})

test.for([
  ['all done', { batchItemFailures: [] }, { done: 3, failed: 0 }],
  ['no response', undefined, { done: 3, failed: 0 }],
  ['two failed', { batchItemFailures: [{ itemIdentifier: 'a' }, { itemIdentifier: 'b' }] }, { done: 1, failed: 2 }],
  ['more failed than delivered', { batchItemFailures: [1, 2, 3, 4] }, { done: 0, failed: 3 }],
] as const)('counts each message of a batch: %s', async ([, result, expected]) => {
  const metrics = createMetrics(2)
  await metrics.withMetrics(async () => result)('queue/batches', { Records: [1, 2, 3] })
  const values = await read(metrics)
  for (const [outcome, count] of Object.entries(expected))
    expect(valueOf(values, 'platform_messages_total', { queue: 'batches', outcome })).toBe(count)
})

test('counts failed and timed-out functions with their messages, and rethrows their errors', async () => {
  const metrics = createMetrics(2)
  const timeout = new FunctionTimeout('queue/batches', 1)
  const invoke = metrics.withMetrics((name) => Promise.reject(name === 'queue/batches' ? timeout : new Error('broken')))
  await expect(invoke('queue/batches', { Records: [1, 2] })).rejects.toBe(timeout)
  await expect(invoke('schedule/sweep', {})).rejects.toThrow('broken')
  const values = await read(metrics)
  expect(valueOf(values, 'platform_function_failures_total')).toBe(2)
  expect(valueOf(values, 'platform_function_timeouts_total', { function: 'queue/batches' })).toBe(1)
  expect(valueOf(values, 'platform_messages_total', { queue: 'batches', outcome: 'failed' })).toBe(2)
  expect(valueOf(values, 'platform_schedule_runs_total', { schedule: 'sweep', outcome: 'failed' })).toBe(1)
  expect(valueOf(values, 'platform_schedule_last_success_timestamp_seconds')).toBe(0)
  expect(valueOf(values, 'platform_functions_in_flight')).toBe(0)
})

const resources = new AsyncDisposableStack()
let barrier: Barrier
let platform: Awaited<ReturnType<typeof platformIn>>
beforeAll(async () => {
  const folder = resources.use(await temporaryFolder())
  barrier = resources.use(await startBarrier())
  const sources = {
    sites: `export const handler = async () => { throw new Error('broken') }`,
    'queue/batches': `export const handler = async ({ Records }) => {
      ${barrier.report('message')}
      return { batchItemFailures: Records.filter(({ body }) => body === 'bad').map(({ messageId }) => ({ itemIdentifier: messageId })) }
    }`,
    'schedule/sweep': `export const handler = async () => { ${barrier.report('sweep')} }`,
  }
  const settings = { PLAT_SWEEP_INTERVAL_SECONDS: '1', PLAT_FUNCTION_THREADS: '2' }
  platform = resources.use(await platformIn(folder.path, sources, settings))
})
afterAll(() => resources.disposeAsync())

async function scrape() {
  const response = await fetch(`${platform.url}/metrics`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
  return parseMetrics(await response.text())
}

test('a scrape contains requests, functions, messages, schedules, queues, store and process', async () => {
  const textBefore = await scrape()
  expect(valueOf(textBefore, 'platform_schedule_last_success_timestamp_seconds', { schedule: 'sweep' })).toBe(0)

  for (const path of ['/api/v1/clusters', '/api/v1/clusters/one', '/api/v1/clusters/two', '/nowhere', '/api/v1/sites'])
    await fetch(platform.url + path)
  const client = queueClient(platform)
  const QueueUrl = `${platform.emulators.sqsUrl}/000000000000/batches`
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: 'bad' }))
  client.destroy()
  await barrier.waitForReports('message')
  const textDuring = await scrape()
  expect(valueOf(textDuring, 'platform_queue_messages', { queue: 'batches', state: 'in_flight' })).toBe(1)
  expect(valueOf(textDuring, 'platform_queue_oldest_message_age_seconds', { queue: 'batches' })).toBeGreaterThan(0)
  expect(valueOf(textDuring, 'platform_functions_in_flight')).toBeGreaterThan(0)
  barrier.open()

  const poll = (name: string) => expect.poll(async () => valueOf(await scrape(), name), { timeout: 20_000 })
  await poll('platform_messages_total').toBe(1)
  await poll('platform_schedule_runs_total').toBeGreaterThan(0)
  const metricsAfter = await scrape()
  const value = (name: string, labels: Record<string, string> = {}) => valueOf(metricsAfter, `platform_${name}`, labels)
  const list = { function: 'clusters', route: 'GET /api/v1/clusters' }
  const labels = { function: 'clusters', route: 'GET /api/v1/clusters/{id}' }
  expect(value('http_requests_total', { ...list, status: '2xx' })).toBe(1)
  expect(value('http_requests_total', { ...labels, status: '2xx' })).toBe(2)
  expect(value('http_request_duration_seconds_count', labels)).toBe(2)
  expect(value('http_requests_total', { function: 'portal', route: '$default' })).toBe(1)
  expect(value('http_requests_total', { function: 'sites', status: '5xx' })).toBe(1)
  expect(value('function_invocations_total', { function: 'sites' })).toBe(1)
  expect(value('function_failures_total', { function: 'sites' })).toBe(1)
  expect(value('messages_total', { queue: 'batches', outcome: 'failed' })).toBe(1)
  expect(value('schedule_runs_total', { schedule: 'sweep', outcome: 'done' })).toBeGreaterThan(0)
  expect(value('schedule_last_success_timestamp_seconds', { schedule: 'sweep' })).toBeGreaterThan(1.7e9)
  expect(value('store_calls_total', { operation: 'CreateTable' })).toBe(1)
  expect(value('function_threads')).toBe(2)
  expect(valueOf(metricsAfter, 'process_resident_memory_bytes')).toBeGreaterThan(1e6)
})

test('every metric has a conventional name, a help text, and a row in the operations guide', async () => {
  const page = await readFile('docs/operations.md', 'utf8')
  for (const [name, { type, help }] of await scrape()) {
    if (!name.startsWith('platform_')) continue
    expect(help, name).toMatch(/\.$/)
    expect(page).toContain(`| \`${name}\` `)
    expect(name.endsWith('_total'), name).toBe(type === 'counter')
    expect(name).not.toMatch(/milli|_ms\b|minutes/)
  }
})

async function get(url: string, headers: Record<string, string>, method = 'GET') {
  const outgoing = request(`${url}/metrics`, { method, headers })
  outgoing.end()
  const [incoming] = await once(outgoing, 'response')
  return { status: Number(incoming.statusCode), body: await text(incoming) }
}

const mayScrape = (url: string) => async (headers: Record<string, string>, method?: string) =>
  (await get(url, headers, method)).body.startsWith('# HELP')

test('without a configured token only local callers may scrape; for others the path is unknown', async () => {
  const { port } = new URL(platform.url)
  const proxiedResponse = await get(platform.url, { 'x-forwarded-for': '192.0.2.1' })
  expect(proxiedResponse).toEqual({ status: 200, body: JSON.stringify({ path: '/metrics' }) })

  const isAllowed = mayScrape(platform.url)
  expect(await isAllowed({})).toBe(true)
  expect(await isAllowed({ host: `localhost:${port}` })).toBe(true)
  const proxyHeaders = ['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Proto', 'x-forwarded-host', 'Via', 'X-Real-IP']
  for (const name of proxyHeaders) expect(await isAllowed({ [name]: 'for=192.0.2.1' }), name).toBe(false)
  for (const host of ['rebound.example.com', '127.0.0.1.example.com']) expect(await isAllowed({ host })).toBe(false)
  for (const method of ['POST', 'HEAD', 'OPTIONS', 'DELETE']) expect(await isAllowed({}, method), method).toBe(false)
  for (const authorization of ['Bearer', 'Bearer undefined', 'Bearer '])
    expect(await isAllowed({ via: 'x', authorization }), authorization).toBe(false)
})

test('a configured token is required, and sufficient from anywhere', async () => {
  const token = 'a-token-of-more-than-24-characters'
  await using folder = await temporaryFolder()
  await using guardedPlatform = await platformIn(folder.path, {}, { PLAT_METRICS_TOKEN: token })
  const isAllowed = mayScrape(guardedPlatform.url)
  expect(await isAllowed({})).toBe(false)
  const proxyHeaders = { 'x-forwarded-for': '192.0.2.1', host: 'platform.example.com' }
  expect(await isAllowed({ ...proxyHeaders, authorization: `Bearer ${token}` })).toBe(true)
  const invalidTokens = [token.slice(1), `${token}x`, '', token.toUpperCase()].map((each) => `Bearer ${each}`)
  for (const authorization of [...invalidTokens, token])
    expect(await isAllowed({ ...proxyHeaders, authorization }), authorization).toBe(false)
})
