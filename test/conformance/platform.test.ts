import { expect } from 'vitest'
import { expectStatus, invalidFields } from './support/answer.ts'
import { waitForEntries } from './support/audit.ts'
import { completeSetupPath, setupBody, setupStatusPath } from './support/setup.ts'
import { test } from './support/test.ts'

// The global setup completes setup and checks its rules.
test('rejects every setup request with 403 once setup is complete', async ({ anonymous, platform }) => {
  const responses = [await anonymous.get(setupStatusPath)]
  for (const json of [undefined, [], {}, { initialAdminToken: 'admin.wrong' }, setupBody(platform.options)]) {
    responses.push(await anonymous.post(completeSetupPath, json))
  }
  for (const response of responses)
    expect(expectStatus(response, 403, 'setup_already_complete').setupComplete).toBe(true)
})

test('records the completion of setup', async ({ admin }) => {
  await waitForEntries(admin, 'action=setup.complete', 1)
})

test('shows the settings of the platform and stores a valid public address', async ({ platform, admin }) => {
  const path = '/api/v1/platform/settings'
  const settings = expectStatus(await admin.get(path), 200)
  // The same address, because another one would disturb other users of the platform.
  expect(expectStatus(await admin.patch(path, { publicUrl: settings.publicUrl }), 200)).toEqual(settings)
  expect(expectStatus(await platform.anonymous.get('/api/v1/portal/configuration'), 200)).toMatchObject(settings)
  for (const publicUrl of ['http://platform.example.com', 'https://platform.example.com/path', 7])
    expect(invalidFields(await admin.patch(path, { publicUrl }))).toEqual(['body /publicUrl'])
  expectStatus(await (await platform.tenant).client.patch(path, settings), 403, 'forbidden')
})

test('readiness returns ok and an aggregate of the critical and degradable checks', async ({ anonymous }) => {
  const { status, aggregate, checks } = expectStatus(await anonymous.get('/health/ready'), 200)
  expect(status).toBe('ok')
  const counting = checks.filter(({ tags }: { tags: string[] }) => !tags.includes('informational'))
  const isHealthy = counting.every((check: { status: string }) => check.status === 'Healthy')
  expect(aggregate).toBe(isHealthy ? 'Healthy' : 'Degraded')
})

test('serves a reference page that loads no external resource', async ({ anonymous }) => {
  const { text, headers } = await anonymous.get('/docs')
  expect(text).not.toMatch(
    /(?:<(?:script|img|iframe|link)[^>]*(?:src|href)=["']?|@import\s*["']?|url\(["']?)(?:https?:)?\/\//i,
  )
  expect(headers.get('content-security-policy') ?? '').toMatch(/default-src 'none'/)
})

test('serves the relay program', async ({ anonymous }) => {
  const { status, text } = await anonymous.get('/relay/relay.mjs')
  expect(status).toBe(200)
  expect(text.length).toBeGreaterThan(1000)
})

test('returns 304 for If-None-Match for static documents', async ({ anonymous }) => {
  for (const path of ['/api/v1/openapi.json', '/docs', '/relay/relay.mjs', '/schemas/module/v1.json']) {
    const { headers } = await anonymous.get(path)
    const etag = headers.get('etag') ?? ''
    expect(etag, path).not.toBe('')
    const revalidation = await anonymous.get(path, { 'if-none-match': etag })
    expect([revalidation.status, revalidation.text], path).toEqual([304, ''])
    expect((await anonymous.get(path, { 'if-none-match': '"other"' })).status, path).toBe(200)
  }
})

test('returns 404 as JSON for unknown paths', async ({ platform }) => {
  const unknownPaths = [
    ['GET', '/api'],
    ['GET', '/api/v1'],
    ['GET', '/api/v2/clusters'],
    ['GET', '/api/v1/clusters/'],
    ['GET', '/API/V1/CLUSTERS'],
    ['PATCH', '/no/such/path'],
  ] as const
  for (const client of [platform.anonymous, await platform.admin]) {
    for (const [method, path] of unknownPaths) expectStatus(await client.send(method, path), 404, 'route_not_found')
  }
})

test('supports HEAD and OPTIONS, and returns 405 with Allow for other methods of a path', async ({ platform }) => {
  const { baseUrl } = platform.options
  for (const [path, allow, method] of [
    ['/api/v1/clusters', 'GET, POST, HEAD, OPTIONS', 'PUT'],
    ['/health/live', 'GET, HEAD, OPTIONS', 'POST'],
    ['/api/v1/auth/me', 'GET, HEAD, OPTIONS', 'DELETE'],
    ['/', 'GET, HEAD, OPTIONS', 'POST'],
  ] as const) {
    const responses = await Promise.all(['OPTIONS', method].map((each) => fetch(`${baseUrl}${path}`, { method: each })))
    expect(responses.map(({ status, headers }) => [status, headers.get('allow')])).toEqual([
      [204, allow],
      [405, allow],
    ])
  }
  const head = await fetch(`${baseUrl}/health/live`, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
})

test('serves the portal to browsers on any path and to API clients at the root only', async ({
  anonymous,
  platform,
}) => {
  const { options } = platform
  const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
  for (const [path, headers, status] of [
    ['/', {}, 200],
    ['/', browser, 200],
    ['/dashboard', browser, 200],
    ['/no/such/page', browser, 404],
  ] as const) {
    // HTML pages are not part of the contract.
    const response = await fetch(`${options.baseUrl}${path}`, { headers })
    expect(response.status, path).toBe(status)
    expect(response.headers.get('content-type') ?? '', path).toMatch(/^text\/html\b/)
    expect(response.headers.get('content-security-policy') ?? '', path).toMatch(/frame-ancestors 'none'/)
  }
  for (const path of ['/dashboard', '/assets/none-00000000.js']) {
    expectStatus(await anonymous.get(path), 404, 'route_not_found')
  }
})
