import { shiftClock } from '@platform/core/clock'
import { register } from '@platform/core/clusters/cluster'
import { newId } from '@platform/core/id'
import { complete } from '@platform/core/platform/setup'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { handler as auth } from '../../functions/auth.ts'
import { handler as events } from '../../functions/queue/events.ts'
import { handler as sweep } from '../../functions/schedule/sweep.ts'
import { handler as sites } from '../../functions/sites.ts'
import { BrowserSession, publicPortalHeaders } from '../support/browser-session.ts'
import { administrator, adminToken, bearer, bootstrapPlatform, newCaller } from '../support/fixtures.ts'
import { captureLog } from '../support/log.ts'
import { jsonRequest, type TestResponse, send } from '../support/request.ts'

vi.hoisted(() =>
  Object.assign(process.env, { PLAT_METRICS: 'emf', PLAT_LOG_LEVEL: 'debug', PLAT_LIMIT_API_BURST: '2' }),
)

beforeAll(bootstrapPlatform)

const isMetric = (line: object): boolean => '_aws' in line
const metricsOf = async (work: () => Promise<unknown>) => (await captureLog(work)).filter(isMetric)

test('logs the caller of a request and not its token, and counts requests without ids', async () => {
  const organisationId = newId('org')
  const headers = await bearer(['Viewer'], organisationId)
  // On a busy machine the limit would otherwise refill between the requests.
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const lines = await captureLog(async () => {
    for (let call = 0; call < 3; call++) await send(sites, { target: '/api/v1/sites', headers })
  })
  const [metrics, [firstLine]] = [lines.filter(isMetric), lines.filter((line) => !isMetric(line))]
  expect(firstLine).toMatchObject({ route: '/api/v1/sites', organisationId, userId: expect.stringMatching(/^user_/) })
  expect(JSON.stringify(lines)).not.toContain(headers.authorization.split('.')[2])
  expect(metrics).toMatchObject([
    { Requests: 1, ServerErrors: 0, RequestDuration: expect.any(Number) },
    { Requests: 1, ServerErrors: 0 },
    { Requests: 1, ServerErrors: 0, RateLimited: 1 },
  ])
  expect(metrics[0]).not.toHaveProperty('RateLimited')
  expect(JSON.stringify(metrics)).not.toContain(organisationId)
})

test('writes the tokens of browser cookies neither to responses nor to the log', async () => {
  const { refreshToken } = await complete({ ...administrator, initialAdminToken: await adminToken() })
  const page = new BrowserSession(publicPortalHeaders)
  const responses: TestResponse[] = []
  const secrets = new Set<string>()
  const collect = (response: TestResponse) => {
    responses.push(response)
    for (const value of page.cookies.values()) for (const part of value.split('.').slice(1)) secrets.add(part)
  }
  const lines = await captureLog(async () => {
    collect(await page.post(auth, '/api/v1/auth/session', { refreshToken }))
    collect(await page.send(auth, { target: '/api/v1/auth/me' }))
    collect(await page.send(auth, jsonRequest('/api/v1/auth/session/refresh', '')))
    collect(await page.send(auth, { target: '/api/v1/auth/me', headers: { 'sec-fetch-site': 'cross-site' } }))
    collect(await page.send(auth, { method: 'DELETE', target: '/api/v1/auth/session' }))
  })
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 403, 204])
  expect([lines.length >= responses.length, secrets.size >= 6]).toEqual([true, true])
  const writtenText = JSON.stringify([lines, responses.map(({ text, headers }) => [text, headers])])
  for (const secret of secrets) expect(writtenText).not.toContain(secret)
})

test('counts failed sign-ins', async () => {
  const credentials = { username: newId('user'), password: 'not the password' }
  const lines = await metricsOf(() => send(auth, jsonRequest('/api/v1/auth/login', credentials)))
  expect(lines).toMatchObject([{ Requests: 1, ServerErrors: 0, SignInFailures: 1 }])
})

test('reports the age of the oldest outbox record and the delay of the sweep', async () => {
  const caller = await newCaller()
  await register(caller, { name: 'late', type: 'Hypervisor' })
  shiftClock(120_000)
  const [sweepMetrics] = await metricsOf(() => sweep())
  expect(sweepMetrics).toMatchObject({ ScheduledRuns: 1, ScheduledRunFailures: 0 })
  // An enqueued record is due again after 30 seconds.
  expect(sweepMetrics?.['SweepDelay']).toBeGreaterThan(60)
  expect(sweepMetrics?.['SweepDelay']).toBeLessThan(130)
  const body = JSON.stringify({ organisationId: caller.organisationId })
  const [messageMetrics] = await metricsOf(() => events({ Records: [{ messageId: 'one', body }] }))
  expect(messageMetrics).toMatchObject({ MessagesProcessed: 1 })
  expect(messageMetrics?.['OutboxLag']).toBeGreaterThanOrEqual(120)
  expect(messageMetrics?.['OutboxLag']).toBeLessThan(180)
})
