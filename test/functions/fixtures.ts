import { randomUUID } from 'node:crypto'
import { projectOrganisation } from '@platform/core/background/projections'
import { advanceBatch } from '@platform/core/jobs/batches/advance'
import { system } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import * as keys from '@platform/core/db/keys'
import { remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { type TestResponse, send, type TestRequest } from '../support/request.ts'
import { enrollRequest } from '../support/fixtures.ts'
import { cloud } from '../core/support/identity.ts'
import { catalogRelease, newModuleId, putCatalog, putModule, releaseFor } from '../core/support/modules.ts'
import { moduleWorld, pushRelease } from './module-world.ts'
import { type Headers, type Person, password, personOf } from './person.ts'
import { type Row, rowNamed, rows, withParameters } from './table.ts'

/** For each operation that somebody signed in may call: a request that succeeds. Every new operation needs a line here. */

/** What a request says beyond its method and path. */
export interface Ask {
  params?: Record<string, string>
  query?: Record<string, string>
  body?: object
}

/** Makes what the request is about, as the caller's own, and answers the request. */
type Fixture = (who: Person) => Ask | Promise<Ask>

export function sentOf(
  { method, endpoint }: Row,
  { params = {}, query = {}, body }: Ask,
  headers: Headers,
): TestRequest {
  const path = withParameters(endpoint.path, (name) => params[name] ?? '')
  const search = new URLSearchParams(query).toString()
  return {
    method,
    target: search === '' ? path : `${path}?${search}`,
    headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  }
}

export const call = (row: Row, ask: Ask, headers: Headers): Promise<TestResponse> =>
  send(row.handler, sentOf(row, ask, headers))

/** A request that succeeds when this person sends it. */
export function askOf({ name }: Row, who: Person): Ask | Promise<Ask> {
  const fixture = fixtures[name]
  if (fixture === undefined) throw new Error(`${name} has no line in fixtures.ts.`)
  return fixture(who)
}

/** What an administrator makes by another operation, or the person itself. */
async function made({ strong }: Person, name: string, ask: Ask, headers = strong): Promise<any> {
  const { status, text, json } = await call(rowNamed(name), ask, headers)
  if (status >= 300) throw new Error(`${name} answered ${status} ${text}`)
  return json
}

const unique = (): string => `thing ${randomUUID()}`
const nothing: Fixture = () => ({})

const newSite = (who: Person) => made(who, 'POST /api/v1/sites', { body: { name: unique() } })
const aSite: Fixture = async (who) => ({ params: { id: (await newSite(who)).id } })

const newCluster = (who: Person) => made(who, 'POST /api/v1/clusters', { body: { name: unique(), type: 'Hypervisor' } })
const aCluster: Fixture = async (who) => ({ params: { id: (await newCluster(who)).id } })

/** A script for a new cluster with a relay. */
async function aScript(who: Person) {
  const cluster = await newCluster(who)
  const relay = await made(who, 'POST /api/v1/relay/enroll', { body: enrollRequest(cluster.enrollmentToken) })
  const payload = { script: 'true', targetNodeIds: [relay.nodes[0].id] }
  return { clusterId: cluster.id, type: 'InvokeScript', payload }
}
const newJob = async (who: Person) => made(who, 'POST /api/v1/jobs', { body: await aScript(who) })
const aJob: Fixture = async (who) => ({ params: { id: (await newJob(who)).id } })
const newBatch = async (who: Person) => made(who, 'POST /api/v1/jobs/batch', { body: { jobs: [await aScript(who)] } })
const aBatch: Fixture = async (who) => ({ params: { batchId: (await newBatch(who)).batchId } })

/** A batch whose jobs were all cancelled. */
async function anEndedBatch(who: Person): Promise<Ask> {
  const ask = await aBatch(who)
  await made(who, 'POST /api/v1/jobs/batch/{batchId}/cancel', ask)
  const { organisationId } = who
  await advanceBatch({ organisationId, batchId: ask.params?.['batchId'] ?? '' })
  await projectOrganisation(organisationId)
  return ask
}

const filter = () => ({ body: { name: unique(), context: 'clusters', filter: {} } })
const newFilter = (who: Person) => made(who, 'POST /api/v1/users/me/saved-filters', filter(), who.headers)
const newToken = (who: Person) => made(who, 'POST /api/v1/users/me/tokens', { body: { name: unique() } }, who.headers)

/** A colleague with less rights than whoever administers users. */
const aColleague: Fixture = async (who) => ({ params: { id: (await personOf('Viewer', who.organisationId)).userId } })
const newUser = () => ({ username: `u-${randomUUID()}`, email: 'ada@example.com', password, roles: ['Viewer'] })

const hook = { url: 'https://hooks.example.com/platform', events: ['*'] }
const newWebhook = (who: Person) => made(who, 'POST /api/v1/webhooks', { body: hook })
const aWebhook: Fixture = async (who) => ({ params: { id: (await newWebhook(who)).id } })
async function aDelivery(who: Person): Promise<Ask> {
  const { id } = await newWebhook(who)
  const delivery = await made(who, 'POST /api/v1/webhooks/{id}/test', { params: { id } })
  return { params: { id, deliveryId: delivery.id } }
}

/** A module that runs. Modules are the whole platform's, whoever asks. */
const aModule: Fixture = async () => {
  const id = newModuleId()
  await putModule(releaseFor(id))
  return { params: { id } }
}

/** A module of the catalog that nobody has installed. */
const anOffer: Fixture = async () => {
  const id = newModuleId()
  const { repository, digest } = await moduleWorld.push(id)
  await putCatalog({ [repository]: [catalogRelease(id, '1.0.0', { digest })] })
  return { params: { id }, body: {} }
}

/** A release that can be applied, to a platform that nobody updates. */
const anUpdate: Fixture = async () => {
  await transact([remove(keys.updateState())])
  const { version: targetVersion } = await pushRelease()
  return { body: { action: 'apply', targetVersion, force: true } }
}

/** An identity provider of the platform, whoever asks. Nothing listens where its tests go. */
const aProvider: Fixture = async () => {
  const body = { ...cloud, authorityHost: 'https://login.invalid' }
  const { id } = await made(await personOf('PlatformAdmin'), 'POST /api/v1/platform/identity/providers', { body })
  return { params: { id } }
}

/** What the user is told of a security matter, by the books. */
async function aNotification({ userId, organisationId, headers }: Person): Promise<string> {
  const event = { name: 'session.reuse_detected', subject: userId, data: { userId, sessionId: newId('sess') } } as const
  await commit(system(organisationId), { writes: [], events: [event] })
  await projectOrganisation(organisationId)
  return (await call(rowNamed('GET /api/v1/notifications'), {}, headers)).json.items[0].id
}

const fixtures: Record<string, Fixture> = {
  'POST /api/v1/auth/logout': nothing,
  'GET /api/v1/auth/me': nothing,

  'GET /api/v1/clusters': async (who) => ({
    query: { filterId: (await newFilter(who)).id, ids: (await newCluster(who)).id },
  }),
  'POST /api/v1/clusters': async (who) => ({
    body: { name: unique(), type: 'Hypervisor', siteId: (await newSite(who)).id },
  }),
  'GET /api/v1/clusters/{id}': aCluster,
  'PATCH /api/v1/clusters/{id}': async (who) => ({
    ...(await aCluster(who)),
    body: { name: unique(), siteId: (await newSite(who)).id },
  }),
  'DELETE /api/v1/clusters/{id}': aCluster,
  'POST /api/v1/clusters/{id}/enrollment-token': aCluster,

  'GET /api/v1/sites': nothing,
  'POST /api/v1/sites': () => ({ body: { name: unique() } }),
  'DELETE /api/v1/sites/{id}': aSite,

  'GET /api/v1/clusters/{id}/timeline': aCluster,

  'POST /api/v1/jobs': async (who) => ({ body: await aScript(who) }),
  'GET /api/v1/jobs': async (who) => {
    const job = await aScript(who)
    const { batchId } = await made(who, 'POST /api/v1/jobs/batch', { body: { jobs: [job] } })
    await advanceBatch({ organisationId: who.organisationId, batchId })
    return { query: { clusterId: job.clusterId, batchId } }
  },
  'GET /api/v1/jobs/{id}': aJob,
  'POST /api/v1/jobs/{id}/cancel': aJob,
  'GET /api/v1/jobs/{id}/output': aJob,

  'POST /api/v1/jobs/batch': async (who) => ({ body: { jobs: [await aScript(who)] } }),
  'GET /api/v1/jobs/batch': nothing,
  'GET /api/v1/jobs/batch/{batchId}': aBatch,
  'POST /api/v1/jobs/batch/{batchId}/cancel': aBatch,
  'POST /api/v1/jobs/batch/{batchId}/retry': anEndedBatch,

  'GET /api/v1/users/me/dashboard-layout': nothing,
  'PATCH /api/v1/users/me/dashboard-layout': () => ({ body: { layout: [] } }),
  'GET /api/v1/users/me/saved-filters': nothing,
  'POST /api/v1/users/me/saved-filters': filter,
  'DELETE /api/v1/users/me/saved-filters/{id}': async (who) => ({ params: { id: (await newFilter(who)).id } }),
  'PUT /api/v1/users/me/password': () => ({ body: { currentPassword: password, newPassword: `${password}!` } }),

  'GET /api/v1/users/me/sessions': nothing,
  'DELETE /api/v1/users/me/sessions/{id}': ({ sessionId }) => ({ params: { id: sessionId } }),
  'GET /api/v1/users/me/tokens': nothing,
  'POST /api/v1/users/me/tokens': () => ({ body: { name: unique() } }),
  'DELETE /api/v1/users/me/tokens/{id}': async (who) => ({ params: { id: (await newToken(who)).id } }),

  'GET /api/v1/users': nothing,
  'POST /api/v1/users': ({ organisationId }) => ({ body: { ...newUser(), organisationId } }),
  'GET /api/v1/roles': nothing,
  'GET /api/v1/users/{id}': aColleague,
  'PATCH /api/v1/users/{id}': async (who) => ({ ...(await aColleague(who)), body: { email: 'eve@example.com' } }),
  'DELETE /api/v1/users/{id}': aColleague,
  'DELETE /api/v1/users/{id}/sessions': aColleague,
  'DELETE /api/v1/users/{id}/tokens': async (who) => {
    const colleague = await personOf('Viewer', who.organisationId)
    await newToken(colleague)
    return { params: { id: colleague.userId } }
  },
  'GET /api/v1/platform/organisations': nothing,
  'POST /api/v1/platform/organisations': () => ({ body: { name: unique() } }),

  'GET /api/v1/webhooks': nothing,
  'POST /api/v1/webhooks': () => ({ body: hook }),
  'PATCH /api/v1/webhooks/{id}': async (who) => ({ ...(await aWebhook(who)), body: { enabled: false } }),
  'DELETE /api/v1/webhooks/{id}': aWebhook,
  'POST /api/v1/webhooks/{id}/test': aWebhook,
  'GET /api/v1/webhooks/{id}/deliveries': aWebhook,
  'POST /api/v1/webhooks/{id}/deliveries/{deliveryId}/redeliver': aDelivery,

  'GET /api/v1/modules/catalog': nothing,
  'POST /api/v1/modules/catalog/scan': nothing,
  'GET /api/v1/modules': nothing,
  'GET /api/v1/modules/{id}': aModule,
  'POST /api/v1/modules/{id}/install': anOffer,
  'DELETE /api/v1/modules/{id}': aModule,
  'POST /api/modules/install': async () => ({ body: { imageRef: (await moduleWorld.push(newModuleId())).reference } }),
  'DELETE /api/modules/{id}': aModule,
  'GET /api/v1/portal/navigation': nothing,
  'GET /api/v1/portal/summary': nothing,
  'GET /api/v1/portal/history': nothing,

  'GET /api/v1/notifications': nothing,
  'PATCH /api/v1/notifications': async (who) => ({ body: { ids: [await aNotification(who)] } }),
  'GET /api/v1/platform/audit': async (who) => {
    const { id: resource } = await newSite(who)
    await projectOrganisation(who.organisationId)
    return { query: { actor: who.userId, resource } }
  },
  'POST /api/v1/platform/audit': () => ({ body: { action: 'change.approved', resource: 'x', detail: 'y' } }),
  'GET /api/v1/platform/audit/export': nothing,
  'GET /api/v1/platform/audit/verify': nothing,
  'GET /api/v1/platform/identity/providers': nothing,
  'POST /api/v1/platform/identity/providers': () => ({ body: cloud }),
  'DELETE /api/v1/platform/identity/providers/{id}': aProvider,
  'POST /api/v1/platform/identity/providers/{id}/test': aProvider,
  'POST /api/v1/platform/identity/providers/{id}/consent': aProvider,
  'GET /api/v1/events/catalog': nothing,

  'GET /api/v1/platform/updates/check': nothing,
  'PUT /api/v1/platform/updates/apply': anUpdate,
}

/** Operations that have gone, but not from here. */
export const staleFixtures = Object.keys(fixtures).filter((name) => rows.every((row) => row.name !== name))
