import { expect, test, vi } from 'vitest'
import { PortalConfiguration } from '@platform/contract/portal'
import { shiftClock } from '@platform/core/clock'
import * as Setup from '@platform/core/platform/setup'
import { version } from '@platform/core/lib/version'
import { handler as clusters } from '../../functions/clusters.ts'
import { handler } from '../../functions/portal-data.ts'
import { jsonRequest, send } from '../support/request.ts'
import { countStoreCalls } from '../support/store-calls.ts'
import { administrator, adminToken, bearer, bootstrapPlatform } from '../support/fixtures.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))

await bootstrapPlatform()

const configuration = () => send(handler, { target: '/api/v1/portal/configuration' })

test('the configuration tells of setup from the moment on that it is complete, and nothing that is secret', async () => {
  const before = await configuration()
  expect([before.status, before.json]).toEqual([200, { setupComplete: false, version }])
  await Setup.complete({ ...administrator, initialAdminToken: await adminToken() })
  const { json } = await configuration()
  const { platformName, publicUrl, timezone } = administrator
  expect(json).toEqual({ setupComplete: true, platformName, publicUrl, timezone, version })
  expect(PortalConfiguration.parse(json)).toEqual(json)
})

test('the configuration is one call of the store, and none while it is known', async () => {
  shiftClock(60_000)
  expect(await countStoreCalls(configuration)).toBe(1)
  expect(await countStoreCalls(configuration)).toBe(0)
  shiftClock(-60_000)
})

const register = (headers: Record<string, string>) =>
  send(clusters, jsonRequest('/api/v1/clusters', { name: 'berlin', type: 'Hypervisor' }, headers))

test.each(['/api/v1/portal/summary', '/api/v1/portal/history?hours=1'])(
  '%s is sent again only where it says something else',
  async (target) => {
    const headers = await bearer(['OrgAdmin'])
    const first = await send(handler, { target, headers })
    expect([first.status, first.headers['cache-control']]).toEqual([200, 'private, no-cache'])
    const etag = first.headers['etag'] ?? ''
    const again = () => send(handler, { target, headers: { ...headers, 'If-None-Match': etag } })
    const same = await again()
    expect([same.status, same.text, same.headers['etag']]).toEqual([304, '', etag])
    expect((await register(headers)).status).toBe(201)
    const changed = await again()
    expect(changed.status).toBe(200)
    expect(changed.headers['etag']).not.toBe(etag)
  },
)

test('a tag of one caller gets another one its own answer', async () => {
  const target = '/api/v1/portal/summary'
  const [mine, theirs] = [await bearer(['OrgAdmin']), await bearer(['OrgAdmin'])]
  await register(mine)
  const { etag = '' } = (await send(handler, { target, headers: mine })).headers
  const other = await send(handler, { target, headers: { ...theirs, 'If-None-Match': etag } })
  expect([other.status, other.json.clusters.total]).toEqual([200, 0])
})

test('the tag of a navigation begins with what the summary says of it', async () => {
  const headers = await bearer(['Operator'])
  const navigation = await send(handler, { target: '/api/v1/portal/navigation', headers })
  const { navigationTag } = (await send(handler, { target: '/api/v1/portal/summary', headers })).json
  expect(navigation.headers['etag']).toMatch(new RegExp(`^"${navigationTag}`))
})
