import { expect, test, vi } from 'vitest'
import type { FunctionName } from '@platform/contract/index'
import { posting, type Received, send } from '../support/event.ts'
import { logged } from '../support/output.ts'
import { relayToken } from '../support/tokens.ts'
import { administrator, adminToken, enrollRequest, relayKey } from '../support/world.ts'
import { handler as bootstrap } from '../../functions/bootstrap.ts'
import { handler as dispatchJobs } from '../../functions/queue/jobs.ts'
import { handler as sweep } from '../../functions/schedule/sweep.ts'
import { handlerOf } from './table.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_CHECK_RESPONSES: '1', PLAT_WAKE_URL: 'http://127.0.0.1:9/wake' }))

/** The life of a platform, through its functions alone. Every answer is compared with the contract. */

const key = relayKey()
const my = { user: {}, relayId: '', clusterId: '', siteId: '', jobId: '', leaseId: '', nodeId: '', refreshToken: '' }

const get = (name: FunctionName, target: string): Promise<Received> =>
  send(handlerOf(name), { target, headers: my.user })

const post = (name: FunctionName, target: string, body: unknown, method = 'POST'): Promise<Received> =>
  send(handlerOf(name), { ...posting(target, body, my.user), method })

const call = (name: FunctionName, method: string, target: string): Promise<Received> =>
  send(handlerOf(name), { method, target, headers: my.user })

async function beat(call: string, body: unknown, headers: Record<string, string> = {}): Promise<Received> {
  const text = body === undefined ? '' : JSON.stringify(body)
  const target = `/api/v1/relay/${call}`
  const identity = await relayToken(my.relayId, key.privateKey, target, text)
  return send(handlerOf('relay'), posting(target, text, { ...identity, ...headers }))
}

const beatPath = '/api/v1/relay/heartbeat'
const sendBody = (text: string, headers: Record<string, string>): Promise<Received> =>
  send(handlerOf('relay'), posting(beatPath, text, headers))

const presence = () => ({ nodes: [{ id: my.nodeId, status: 'Online' }], running: [], freeSlots: 4 })

function signedIn({ status, json }: Received): void {
  expect(status).toBe(200)
  my.user = { authorization: `Bearer ${json.accessToken}` }
  my.refreshToken = json.refreshToken
}

test('it is alive before it has started, and ready afterwards', async () => {
  expect(await get('health', '/health/live')).toMatchObject({ status: 200, json: { status: 'ok' } })
  for (const probe of ['ready', 'startup']) {
    const { status, headers, json } = await get('health', `/health/${probe}`)
    expect([status, json.status, headers['retry-after']]).toEqual([503, 'unavailable', '2'])
  }
  await bootstrap()
  for (const probe of ['ready', 'startup']) {
    expect(await get('health', `/health/${probe}`)).toMatchObject({ status: 200, json: { status: 'ok' } })
  }
})

test('setup is completed once, with the initial admin token', async () => {
  expect((await get('setup', '/api/v1/setup/status')).json).toEqual({ setupComplete: false, wizardStep: 'welcome' })
  const refused = await post('setup', '/api/v1/setup/complete', administrator)
  expect(refused).toMatchObject({ status: 422, json: { howToRetrieve: expect.any(String) } })
  const request = { ...administrator, initialAdminToken: await adminToken() }
  const short = await post('setup', '/api/v1/setup/complete', { ...request, adminPassword: 'short' })
  expect(short.json.details).toMatchObject([{ in: 'body', path: '/adminPassword' }])
  signedIn(await post('setup', '/api/v1/setup/complete', request))
  const afterwards = [await get('setup', '/api/v1/setup/status'), await post('setup', '/api/v1/setup/complete', '{')]
  for (const { status, json } of afterwards) {
    expect([status, json.error, json.setupComplete]).toEqual([403, 'setup_already_complete', true])
  }
})

test('its administrator signs in, refreshes and reads the profile', async () => {
  const credentials = { username: 'admin', password: administrator.adminPassword }
  signedIn(await post('auth', '/api/v1/auth/login', credentials))
  signedIn(await post('auth', '/api/v1/auth/local-login', credentials))
  signedIn(await post('auth', '/api/v1/auth/refresh', { refreshToken: my.refreshToken }))
  expect((await get('auth', '/api/v1/auth/me')).json).toMatchObject({ username: 'admin', roles: ['PlatformAdmin'] })
  const wrong = await post('auth', '/api/v1/auth/login', { ...credentials, password: 'wrong' })
  expect([wrong.status, wrong.json.error]).toEqual([401, 'invalid_credentials'])
})

test('a site and a cluster are registered, read, changed and listed', async () => {
  const site = await post('sites', '/api/v1/sites', { name: 'Berlin' })
  expect(site.status).toBe(201)
  my.siteId = site.json.id
  expect((await get('sites', '/api/v1/sites')).json.items).toEqual([site.json])
  const cluster = await post('clusters', '/api/v1/clusters', {
    name: 'berlin-1',
    type: 'Hypervisor',
    siteId: my.siteId,
  })
  expect(cluster).toMatchObject({ status: 201, json: { status: 'Pending' } })
  my.clusterId = cluster.json.id
  const target = `/api/v1/clusters/${my.clusterId}`
  expect((await get('clusters', target)).json).toMatchObject({ name: 'berlin-1', relay: null, siteId: my.siteId })
  expect((await post('clusters', target, { name: 'berlin-2' }, 'PATCH')).json.name).toBe('berlin-2')
  const listed = await get('clusters', '/api/v1/clusters?status=Pending&type=Hypervisor&page=1&pageSize=10')
  expect(listed.json).toMatchObject({ totalCount: 1, page: 1, pageSize: 10, items: [{ id: my.clusterId }] })
})

test('a relay enrolls with a new token and beats; an idle beat may be held', async () => {
  const issued = await call('clusters', 'POST', `/api/v1/clusters/${my.clusterId}/enrollment-token`)
  expect(issued.status).toBe(201)
  const request = { ...enrollRequest(issued.json.enrollmentToken), publicKey: key.wire }
  const enrolled = await send(handlerOf('relay'), posting('/api/v1/relay/enroll', request))
  expect(enrolled.status).toBe(201)
  my.relayId = enrolled.json.relayId
  my.nodeId = enrolled.json.nodes[0].id
  const held = await beat('heartbeat', presence(), { Prefer: 'wait=60' })
  expect(held.json.jobs).toEqual([])
  expect(held.headers).toMatchObject({
    'grip-hold': 'response',
    'grip-channel': my.clusterId,
    'grip-timeout': '25',
    'preference-applied': 'wait=25',
  })
  expect((await beat('heartbeat', presence())).headers).not.toHaveProperty('grip-hold')
})

test('a relay request works once, with the body that it was signed for, by the key that enrolled', async () => {
  const body = JSON.stringify(presence())
  const identity = await relayToken(my.relayId, key.privateKey, beatPath, body)
  expect((await sendBody(`${body} `, identity)).status).toBe(401)
  const elsewhere = await relayToken(my.relayId, key.privateKey, '/api/v1/relay/goodbye', body)
  expect((await sendBody(body, elsewhere)).status).toBe(401)
  expect((await sendBody(body, identity)).status).toBe(200)
  expect((await sendBody(body, identity)).status).toBe(401)
  expect((await sendBody(body, await relayToken(my.relayId, relayKey().privateKey, beatPath, body))).status).toBe(401)
})

test('a job runs from its submission to its result', async () => {
  const submission = { clusterId: my.clusterId, type: 'InvokeScript', payload: { script: 'uname' } }
  const accepted = await post('jobs', '/api/v1/jobs', submission)
  expect(accepted).toMatchObject({ status: 202, json: { status: 'Queued' } })
  my.jobId = accepted.json.id
  const { organisationId } = (await get('auth', '/api/v1/auth/me')).json
  const body = JSON.stringify({ organisationId, jobId: my.jobId })
  const records = { Records: [body, 'broken', body].map((text, index) => ({ messageId: `${index}`, body: text })) }
  await logged(async () => {
    expect(await dispatchJobs(records)).toEqual({ batchItemFailures: [{ itemIdentifier: '1' }] })
  })

  const busy = await beat('heartbeat', presence(), { Prefer: 'wait=20' })
  expect(busy.json.jobs).toEqual([my.jobId])
  expect(busy.headers).not.toHaveProperty('grip-hold')
  const claimed = await beat(`jobs/${my.jobId}/claim`, undefined, { 'Idempotency-Key': 'once' })
  expect(claimed).toMatchObject({ status: 200, json: { payload: { script: 'uname' } } })
  const again = await beat(`jobs/${my.jobId}/claim`, undefined, { 'Idempotency-Key': 'once' })
  expect(again.json.leaseId).toBe(claimed.json.leaseId)
  my.leaseId = claimed.json.leaseId

  const chunk = { leaseId: my.leaseId, seq: 0, nodeId: my.nodeId, stream: 'stdout', data: 'Linux\n' }
  expect((await beat(`jobs/${my.jobId}/output`, chunk)).json).toEqual({ nextSeq: 1, cancel: false })
  const live = await get('jobs', `/api/v1/jobs/${my.jobId}/output?offset=2`)
  expect(live.json).toMatchObject({ items: [{ offset: 2, data: 'nux\n' }], nextOffset: 6, finished: false })
  const nodes = [{ nodeId: my.nodeId, exitCode: 0 }]
  const completion = { leaseId: my.leaseId, outcome: 'exited', exitCode: 0, nodes }
  expect((await beat(`jobs/${my.jobId}/complete`, completion)).json.status).toBe('Completed')
  const job = await get('jobs', `/api/v1/jobs/${my.jobId}`)
  expect(job.json).toMatchObject({ status: 'Completed', result: { output: 'Linux\n', exitCode: 0 } })
})

test('a job that waits is cancelled, and its cluster is removed with its site', async () => {
  const submission = { clusterId: my.clusterId, type: 'InvokeScript', payload: { script: 'sleep 1' } }
  const { id } = (await post('jobs', '/api/v1/jobs', submission)).json
  const target = `/api/v1/clusters/${my.clusterId}`
  expect(await call('clusters', 'DELETE', target)).toMatchObject({ status: 409 })
  const cancelled = await call('jobs', 'POST', `/api/v1/jobs/${id}/cancel`)
  expect(cancelled).toMatchObject({ status: 202, json: { status: 'Cancelled' } })
  expect((await beat('goodbye', { reason: 'test' })).status).toBe(204)
  await sweep()
  expect(await call('clusters', 'DELETE', target)).toMatchObject({ status: 204, text: '' })
  expect((await get('clusters', target)).status).toBe(404)
  expect((await call('sites', 'DELETE', `/api/v1/sites/${my.siteId}`)).status).toBe(204)
})

test('its administrator signs out, and the session is over', async () => {
  expect(await call('auth', 'POST', '/api/v1/auth/logout')).toMatchObject({ status: 204, text: '' })
  const { status, json } = await post('auth', '/api/v1/auth/refresh', { refreshToken: my.refreshToken })
  expect([status, json.error]).toEqual([401, 'invalid_refresh_token'])
})
