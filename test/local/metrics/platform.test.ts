import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { SendMessageCommand } from '@aws-sdk/client-sqs'
import { expect, test } from 'vitest'
import { parseMetrics, valueOf } from '../../support/prometheus.ts'
import { startGate } from '../runner/gate.ts'
import { platformIn, queueClient, temporaryFolder } from '../runner/support.ts'
import { isLong } from '../../support/long.ts'

const scrape = async (url: string) => {
  const response = await fetch(`${url}/metrics`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
  return parseMetrics(await response.text())
}

/** A request with headers that `fetch` would not send. */
async function get(url: string, headers: Record<string, string>, method = 'GET') {
  const outgoing = request(`${url}/metrics`, { method, headers })
  outgoing.end()
  const [incoming] = await once(outgoing, 'response')
  return { status: Number(incoming.statusCode), body: await text(incoming) }
}

test('a scrape after traffic says what happened: requests, functions, messages, schedules, queues, store, process', async () => {
  await using folder = await temporaryFolder()
  await using gate = await startGate()
  await using platform = await platformIn(
    folder.path,
    {
      sites: `export const handler = async () => { throw new Error('broken') }`,
      'queue/jobs': `export const handler = async ({ Records }) => {
        ${gate.pass('message')}
        return { batchItemFailures: Records.filter(({ body }) => body === 'bad').map(({ messageId }) => ({ itemIdentifier: messageId })) }
      }`,
      'schedule/sweep': `export const handler = async () => { ${gate.pass('sweep')} }`,
    },
    { PLAT_SWEEP_INTERVAL_SECONDS: '1' },
  )
  const before = await scrape(platform.url)
  expect(valueOf(before, 'platform_schedule_last_success_timestamp_seconds', { schedule: 'sweep' })).toBe(0)

  for (const path of ['/api/v1/clusters', '/api/v1/clusters/one', '/api/v1/clusters/two', '/nowhere', '/api/v1/sites'])
    await fetch(platform.url + path)
  const client = queueClient(platform)
  const QueueUrl = `${platform.standIns.sqsUrl}/000000000000/jobs`
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: 'bad' }))
  client.destroy()
  await gate.arrived('message')
  const during = await scrape(platform.url)
  expect(valueOf(during, 'platform_queue_messages', { queue: 'jobs', state: 'in_flight' })).toBe(1)
  expect(valueOf(during, 'platform_queue_oldest_message_age_seconds', { queue: 'jobs' })).toBeGreaterThan(0)
  expect(valueOf(during, 'platform_functions_in_flight')).toBeGreaterThan(0)
  gate.open()

  await expect.poll(async () => valueOf(await scrape(platform.url), 'platform_messages_total')).toBe(1)
  await expect
    .poll(async () => valueOf(await scrape(platform.url), 'platform_schedule_runs_total'), { timeout: 5000 })
    .toBeGreaterThan(0)
  const after = await scrape(platform.url)
  const counted = (name: string, labels: Record<string, string>) => valueOf(after, name, labels)
  const list = { function: 'clusters', route: 'GET /api/v1/clusters' }
  const one = { function: 'clusters', route: 'GET /api/v1/clusters/{id}' }
  expect(counted('platform_http_requests_total', { ...list, status: '2xx' })).toBe(1)
  expect(counted('platform_http_requests_total', { ...one, status: '2xx' })).toBe(2)
  expect(counted('platform_http_request_duration_seconds_count', one)).toBe(2)
  expect(counted('platform_http_requests_total', { function: 'portal', route: '$default' })).toBe(1)
  expect(counted('platform_http_requests_total', { function: 'sites', status: '5xx' })).toBe(1)
  expect(counted('platform_function_invocations_total', { function: 'sites' })).toBe(1)
  expect(counted('platform_function_failures_total', { function: 'sites' })).toBe(1)
  expect(counted('platform_messages_total', { queue: 'jobs', outcome: 'failed' })).toBe(1)
  expect(counted('platform_schedule_runs_total', { schedule: 'sweep', outcome: 'done' })).toBeGreaterThan(0)
  const lastSuccess = counted('platform_schedule_last_success_timestamp_seconds', { schedule: 'sweep' })
  expect(Math.abs(Date.now() / 1000 - lastSuccess)).toBeLessThan(10)
  expect(counted('platform_store_calls_total', { operation: 'CreateTable' })).toBe(1)
  expect(counted('platform_function_threads', {})).toBe(2)
  expect(counted('process_resident_memory_bytes', {})).toBeGreaterThan(1e6)
})

test('every metric of the platform is named as Prometheus asks, and explained, to operators as well', async () => {
  await using folder = await temporaryFolder()
  await using platform = await platformIn(folder.path)
  const page = await readFile('docs/operations.md', 'utf8')
  for (const [name, { type, help }] of await scrape(platform.url)) {
    if (!name.startsWith('platform_')) continue
    expect(help, name).toMatch(/\.$/)
    expect(page).toContain(`| \`${name}\` `)
    expect(name.endsWith('_total'), name).toBe(type === 'counter')
    expect(name).not.toMatch(/milli|_ms\b|minutes/)
  }
})

const token = 'a-token-of-more-than-24-characters'
const withToken = { PLAT_METRICS_TOKEN: token }

const opens = (url: string) => async (headers: Record<string, string>, method?: string) =>
  (await get(url, headers, method)).body.startsWith('# HELP')

test('without a token the metrics are for this machine; to everybody else the path is unknown', async () => {
  await using folder = await temporaryFolder()
  await using platform = await platformIn(folder.path)
  const { port } = new URL(platform.url)
  const unknown = await get(platform.url, { 'x-forwarded-for': '192.0.2.1' })
  expect(unknown.status).toBe((await fetch(`${platform.url}/nowhere`)).status)
  expect(unknown.body).toBe(JSON.stringify({ path: '/metrics' }))

  const isOpen = opens(platform.url)
  expect(await isOpen({})).toBe(true)
  expect(await isOpen({ host: `localhost:${port}` })).toBe(true)
  const ofProxies = ['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Proto', 'x-forwarded-host', 'Via', 'X-Real-IP']
  for (const name of ofProxies) expect(await isOpen({ [name]: 'for=192.0.2.1' }), name).toBe(false)
  expect(await isOpen({ host: 'rebound.example.com' })).toBe(false)
  expect(await isOpen({ host: '127.0.0.1.example.com' })).toBe(false)
  for (const method of ['POST', 'HEAD', 'OPTIONS', 'DELETE']) expect(await isOpen({}, method), method).toBe(false)
})

test('a token opens the metrics from everywhere, and nothing else does', async () => {
  await using folder = await temporaryFolder()
  await using platform = await platformIn(folder.path, {}, withToken)
  const isOpen = opens(platform.url)
  expect(await isOpen({})).toBe(false)
  const proxied = { 'x-forwarded-for': '192.0.2.1', host: 'platform.example.com' }
  expect(await isOpen({ ...proxied, authorization: `Bearer ${token}` })).toBe(true)
  const wrong = [token.slice(1), `${token}x`, '', token.toUpperCase()]
  for (const each of wrong) expect(await isOpen({ ...proxied, authorization: `Bearer ${each}` }), each).toBe(false)
  expect(await isOpen({ ...proxied, authorization: token })).toBe(false)
})

test.runIf(isLong)('where no token is set, none opens the metrics', async () => {
  await using folder = await temporaryFolder()
  await using platform = await platformIn(folder.path)
  for (const authorization of ['Bearer', 'Bearer undefined', 'Bearer '])
    expect((await get(platform.url, { via: 'x', authorization })).body).toBe(JSON.stringify({ path: '/metrics' }))
})
