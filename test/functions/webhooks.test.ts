import { randomUUID } from 'node:crypto'
import { newId } from '@platform/core/id'
import { expect, test } from 'vitest'
import { posting, send } from '../support/event.ts'
import { bearer } from '../support/tokens.ts'
import { started } from '../support/world.ts'
import { handlerOf } from './table.ts'

await started()
const path = '/api/v1/webhooks'
const wanted = { url: 'https://hooks.example.com/', events: ['platform.batch.finished'] }
const call = (method: string, target: string, headers: Record<string, string>, body?: object) =>
  send(handlerOf('webhooks'), {
    ...(body && posting(target, body, headers)),
    target,
    method,
    headers: { ...headers, ...(body && json) },
  })
const json = { 'content-type': 'application/json' }

test('the life of a webhook: made, listed, changed, tested, removed', async () => {
  const admin = await bearer(['OrgAdmin'])
  const made = await call('POST', path, admin, wanted)
  expect([made.status, made.json.enabled]).toEqual([201, true])
  const { secret: _, ...shown } = made.json
  expect((await call('GET', path, admin)).json).toEqual({ items: [shown] })
  expect(await call('PATCH', `${path}/${shown.id}`, admin, { events: ['*'] })).toMatchObject({
    status: 200,
    json: { events: ['*'] },
  })
  const tested = await call('POST', `${path}/${shown.id}/test`, admin)
  expect([tested.status, tested.json.status]).toEqual([202, 'Pending'])
  const deliveries = await call('GET', `${path}/${shown.id}/deliveries?pageSize=5`, admin)
  expect(deliveries.json).toEqual({ items: [tested.json], totalCount: 1, page: 1, pageSize: 5 })
  const again = await call('POST', `${path}/${shown.id}/deliveries/${tested.json.id}/redeliver`, admin)
  expect([again.status, again.json.id]).toEqual([202, tested.json.id])
  expect((await call('DELETE', `${path}/${shown.id}`, admin)).status).toBe(204)
  expect((await call('GET', `${path}/${shown.id}/deliveries`, admin)).status).toBe(404)
})

test('only administrators of an organisation have webhooks', async () => {
  for (const role of ['ClusterAdmin', 'Operator', 'Viewer', 'Auditor']) {
    const { status, json } = await call('POST', path, await bearer([role]), wanted)
    expect([role, status, json.requiredPermission]).toEqual([role, 403, 'users:admin'])
  }
  expect((await call('GET', path, await bearer(['PlatformAdmin']))).status).toBe(200)
})

test('a request that is repeated with its Idempotency-Key makes one webhook, and tells its secret again', async () => {
  const headers = { ...(await bearer(['OrgAdmin'])), 'idempotency-key': randomUUID() }
  const first = await call('POST', path, headers, wanted)
  const second = await call('POST', path, headers, wanted)
  expect([first.status, second.status, second.json]).toEqual([201, 201, first.json])
  expect((await call('GET', path, headers)).json.items).toHaveLength(1)
})

test.each([
  [{ ...wanted, url: 'ftp://hooks.example.com/' }, 'validation_failed', 400],
  [{ ...wanted, url: 'hooks.example.com' }, 'validation_failed', 400],
  [{ ...wanted, url: `https://hooks.example.com/${'x'.repeat(2000)}` }, 'validation_failed', 400],
  [{ ...wanted, url: 'https://hooks.example.com/\u0000' }, 'validation_failed', 400],
  [{ ...wanted, events: [] }, 'validation_failed', 400],
  [{ ...wanted, events: ['platform.nothing.happened'] }, 'validation_failed', 400],
  [{ ...wanted, events: ['platform.*'] }, 'validation_failed', 400],
  [{ url: wanted.url }, 'validation_failed', 400],
  [{ ...wanted, url: 'http://127.1/' }, 'url_not_allowed', 422],
])('%j is refused', async (body, error, status) => {
  const answer = await call('POST', path, await bearer(['OrgAdmin']), body)
  expect([answer.status, answer.json.error]).toEqual([status, error])
})

test('what does not exist is not found', async () => {
  const admin = await bearer(['OrgAdmin'])
  const [hook, delivery] = [newId('hook'), newId('dlv')]
  const { json } = await call('POST', path, admin, wanted)
  const missing = [
    ['POST', `${path}/${hook}/test`, 'webhook_not_found'],
    ['GET', `${path}/${hook}/deliveries`, 'webhook_not_found'],
    ['POST', `${path}/${hook}/deliveries/${delivery}/redeliver`, 'webhook_not_found'],
    ['POST', `${path}/${json.id}/deliveries/${delivery}/redeliver`, 'delivery_not_found'],
  ]
  for (const [method = '', target = '', error] of missing) {
    const answer = await call(method, target, admin)
    expect([target, answer.status, answer.json.error]).toEqual([target, 404, error])
  }
})
