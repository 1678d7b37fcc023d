import { afterAll, expect, test, vi } from 'vitest'
import type { IdPrefix } from '@platform/contract/common'
import { newId } from '@platform/core/id'
import { call, type RequestParts, requestWithTarget, validRequest } from './fixtures.ts'
import { idPlaces, valueAt, withValueOf } from './id-places.ts'
import { moduleWorld } from './module-world.ts'
import { type Operation, operations } from './operations.ts'
import { newUser, type SignedInUser } from './users.ts'
import { writes } from './writes.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))
await vi.hoisted(() => import('./module-world.ts'))
afterAll(() => moduleWorld[Symbol.asyncDispose]())

/** Tenant isolation: an id of another organisation in a request has the same result as an unknown id. */

const expectedResults: Record<string, string> = {
  'GET /api/v1/clusters query.filterId': '404 filter_not_found',
  'GET /api/v1/clusters query.ids': '200 nothing',
  'POST /api/v1/clusters body.siteId': '422 site_not_found',
  'POST /api/v1/clusters/labels body.target.clusterIds': '403 cluster_forbidden',
  'POST /api/v1/clusters/labels body.target.savedFilterId': '404 filter_not_found',
  'POST /api/v1/clusters/site body.target.clusterIds': '403 cluster_forbidden',
  'POST /api/v1/clusters/site body.target.savedFilterId': '404 filter_not_found',
  'POST /api/v1/clusters/site body.siteId': '422 site_not_found',
  'POST /api/v1/targets/resolve body.target.clusterIds': '403 cluster_forbidden',
  'POST /api/v1/targets/resolve body.target.savedFilterId': '404 filter_not_found',
  'GET /api/v1/clusters/{id} params.id': '404 cluster_not_found',
  'PATCH /api/v1/clusters/{id} params.id': '404 cluster_not_found',
  'PATCH /api/v1/clusters/{id} body.siteId': '422 site_not_found',
  'DELETE /api/v1/clusters/{id} params.id': '404 cluster_not_found',
  'POST /api/v1/clusters/{id}/enrollment-token params.id': '404 cluster_not_found',
  'POST /api/v1/clusters/{id}/approve params.id': '404 cluster_not_found',
  'POST /api/v1/enrollment-keys body.siteId': '422 site_not_found',
  'DELETE /api/v1/enrollment-keys/{id} params.id': '404 enrollment_key_not_found',
  'POST /api/v1/relay-updates body.target.clusterIds': '403 cluster_forbidden',
  'POST /api/v1/relay-updates body.target.savedFilterId': '404 filter_not_found',
  'GET /api/v1/relay-updates/{id} params.id': '404 relay_update_not_found',
  'GET /api/v1/relay-updates/{id}/clusters params.id': '404 relay_update_not_found',
  'POST /api/v1/relay-updates/{id}/cancel params.id': '404 relay_update_not_found',
  'DELETE /api/v1/sites/{id} params.id': '404 site_not_found',
  'POST /api/v1/jobs body.clusterId': '404 cluster_not_found',
  'POST /api/v1/jobs body.payload.targetNodeIds': '422 node_not_in_cluster',
  'GET /api/v1/jobs query.clusterId': '200 nothing',
  'GET /api/v1/jobs query.batchId': '200 nothing',
  'GET /api/v1/jobs/{id} params.id': '404 job_not_found',
  'POST /api/v1/jobs/{id}/cancel params.id': '404 job_not_found',
  'GET /api/v1/jobs/{id}/output params.id': '404 job_not_found',
  'POST /api/v1/jobs/batch body.payload.targetNodeIds': '422 node_not_in_cluster',
  'POST /api/v1/jobs/batch body.target.clusterIds': '403 cluster_forbidden',
  'POST /api/v1/jobs/batch body.target.savedFilterId': '404 filter_not_found',
  'POST /api/v1/jobs/batch body.jobs.clusterId': '403 cluster_forbidden',
  'POST /api/v1/jobs/batch body.jobs.payload.targetNodeIds': '422 node_not_in_cluster',
  'GET /api/v1/jobs/batch/{batchId} params.batchId': '404 batch_not_found',
  'POST /api/v1/jobs/batch/{batchId}/cancel params.batchId': '404 batch_not_found',
  'POST /api/v1/jobs/batch/{batchId}/retry params.batchId': '404 batch_not_found',
  'GET /api/v1/jobs/batch/{batchId}/groups params.batchId': '404 batch_not_found',
  'GET /api/v1/jobs/batch/{batchId}/groups/{group}/clusters params.batchId': '404 batch_not_found',
  'GET /api/v1/jobs/batch/{batchId}/results params.batchId': '404 batch_not_found',
  'DELETE /api/v1/users/me/saved-filters/{id} params.id': '404 filter_not_found',
  'DELETE /api/v1/users/me/sessions/{id} params.id': '404 session_not_found',
  'DELETE /api/v1/users/me/tokens/{id} params.id': '404 token_not_found',
  'GET /api/v1/users/{id} params.id': '404 user_not_found',
  'PATCH /api/v1/users/{id} params.id': '404 user_not_found',
  'DELETE /api/v1/users/{id} params.id': '404 user_not_found',
  'DELETE /api/v1/users/{id}/sessions params.id': '404 user_not_found',
  'DELETE /api/v1/users/{id}/tokens params.id': '404 user_not_found',
  'POST /api/v1/users body.organisationId': '404 organisation_not_found',
  'GET /api/v1/clusters/{id}/timeline params.id': '404 cluster_not_found',
  'PATCH /api/v1/webhooks/{id} params.id': '404 webhook_not_found',
  'DELETE /api/v1/webhooks/{id} params.id': '404 webhook_not_found',
  'POST /api/v1/webhooks/{id}/rotate-secret params.id': '404 webhook_not_found',
  'POST /api/v1/webhooks/{id}/test params.id': '404 webhook_not_found',
  'GET /api/v1/webhooks/{id}/deliveries params.id': '404 webhook_not_found',
  'POST /api/v1/webhooks/{id}/deliveries/{deliveryId}/redeliver params.id': '404 webhook_not_found',
  'POST /api/v1/webhooks/{id}/deliveries/{deliveryId}/redeliver params.deliveryId': '404 delivery_not_found',
  'PATCH /api/v1/notifications body.ids': '204 nothing',
  'GET /api/v1/platform/audit query.actor': '200 nothing',
  'GET /api/v1/platform/audit query.resource': '200 nothing',
}

/** Platform administrators may create the first user of another organisation. */
const isOpenToPlatform = (name: string): boolean => name === 'POST /api/v1/users body.organisationId'

/** Resources of single users, which are hidden from colleagues as well. */
const isPrivate = (name: string): boolean => /\/users\/me\/|\/notifications|filterId/i.test(name)

/** Modules, identity providers and the list of organisations belong to the platform. */
const isOfPlatform = ({ name }: Operation): boolean =>
  / \/api\/(v1\/)?(modules|organisation\/modules|platform\/(identity|organisations))/.test(name)

const places = operations
  .filter(({ endpoint: { access } }) => access !== 'public' && access !== 'relay')
  .filter((operation) => !isOfPlatform(operation))
  .flatMap((operation) => idPlaces(operation).map((place) => [`${operation.name} ${place}`, operation, place] as const))

test('the table lists exactly the places where requests contain ids', () => {
  expect(places.map(([name]) => name).toSorted()).toEqual(Object.keys(expectedResults).toSorted())
})

async function access(
  operation: Operation,
  place: string,
  { own: ownParts, other: otherParts }: { own: RequestParts; other: RequestParts },
  { headers }: SignedInUser,
) {
  const writesBefore = writes()
  const { status, json } = await call(operation, withValueOf(ownParts, otherParts, place), headers)
  const isEmpty = json === undefined || (json.totalCount === 0 && json.items.length === 0)
  const outcome = `${status} ${json?.error ?? (isEmpty ? 'nothing' : 'something')}`
  return { outcome, message: json?.message, writes: writes() - writesBefore }
}

const withUnknownIds = (parts: RequestParts): RequestParts =>
  JSON.parse(
    JSON.stringify(parts).replaceAll(/"([a-z]+)_[0-9a-z]{26}"/g, (_, prefix: IdPrefix) => `"${newId(prefix)}"`),
  )

const requestFor = (operation: Operation, place: string, user: SignedInUser) =>
  / body\.target\.|\/batch body\.payload\./.test(`${operation.name} ${place}`)
    ? requestWithTarget(operation, user, place.split('.')[2])
    : validRequest(operation, user)

async function expectNotFound(operation: Operation, place: string, owner: SignedInUser, user: SignedInUser) {
  const [ownRequest, otherRequest] = [
    await requestFor(operation, place, user),
    await requestFor(operation, place, owner),
  ]
  expect(valueAt(otherRequest, place), 'The line in fixtures.ts must contain the id').toBeDefined()
  const foreignAccess = await access(operation, place, { own: ownRequest, other: otherRequest }, user)
  expect(foreignAccess).toMatchObject({ outcome: expectedResults[`${operation.name} ${place}`], writes: 0 })
  expect(foreignAccess).toEqual(
    await access(operation, place, { own: ownRequest, other: withUnknownIds(otherRequest) }, user),
  )
}

test.each(places)('%s of another organisation is not found', async (name, operation, place) => {
  const owner = await newUser('OrgAdmin')
  await expectNotFound(operation, place, owner, await newUser('OrgAdmin'))
  if (!isOpenToPlatform(name)) await expectNotFound(operation, place, owner, await newUser('PlatformAdmin'))
})

test.each(places.filter(([name]) => isPrivate(name)))('%s of a colleague is not found', async (_, operation, place) => {
  const owner = await newUser('OrgAdmin')
  await expectNotFound(operation, place, owner, await newUser('OrgAdmin', owner.organisationId))
})

const isShared = (operation: Operation): boolean =>
  idPlaces(operation).every((place) => !isPrivate(`${operation.name} ${place}`))

// Without this test, an invalid fixture would look like a protected resource.
test.each([...new Set(places.map(([, operation]) => operation).filter(isShared))])(
  '$name succeeds for a colleague',
  async (operation) => {
    const owner = await newUser('OrgAdmin')
    const colleague = await newUser('OrgAdmin', owner.organisationId)
    const { status, text } = await call(operation, await validRequest(operation, owner), colleague.headers)
    expect(Object.keys(operation.endpoint.responses), text).toContain(String(status))
  },
)

test.each(places.filter(([name]) => expectedResults[name] === '200 nothing'))(
  '%s of the caller’s organisation is found',
  async (_, operation, place) => {
    const owner = await newUser('OrgAdmin')
    const colleague = await newUser('OrgAdmin', owner.organisationId)
    const ownRequest = await validRequest(operation, owner)
    expect(await access(operation, place, { own: ownRequest, other: ownRequest }, colleague)).toMatchObject({
      outcome: '200 something',
    })
  },
)
