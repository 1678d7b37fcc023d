import { afterAll, expect, test, vi } from 'vitest'
import type { IdPrefix } from '@platform/contract/common'
import { newId } from '@platform/core/id'
import { type Ask, askOf, call } from './fixtures.ts'
import { idPlaces, valueAt, withForeign } from './id-places.ts'
import { moduleWorld } from './module-world.ts'
import { type Person, personOf } from './person.ts'
import { type Row, rows } from './table.ts'
import { writes } from './writes.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))
await vi.hoisted(() => import('./module-world.ts'))
afterAll(() => moduleWorld[Symbol.asyncDispose]())

/**
 * Tenant × id. Wherever a request can name a thing, in its path, query or body, it names one of another organisation. What
 * is answered stands here by hand; it is the same that an id answers which nobody has.
 */

const answers: Record<string, string> = {
  'GET /api/v1/clusters query.filterId': '404 filter_not_found',
  'GET /api/v1/clusters query.ids': '200 nothing',
  'POST /api/v1/clusters body.siteId': '422 site_not_found',
  'GET /api/v1/clusters/{id} params.id': '404 cluster_not_found',
  'PATCH /api/v1/clusters/{id} params.id': '404 cluster_not_found',
  'PATCH /api/v1/clusters/{id} body.siteId': '422 site_not_found',
  'DELETE /api/v1/clusters/{id} params.id': '404 cluster_not_found',
  'POST /api/v1/clusters/{id}/enrollment-token params.id': '404 cluster_not_found',
  'DELETE /api/v1/sites/{id} params.id': '404 site_not_found',
  'POST /api/v1/jobs body.clusterId': '404 cluster_not_found',
  'POST /api/v1/jobs body.payload.targetNodeIds': '422 node_not_in_cluster',
  'GET /api/v1/jobs query.clusterId': '200 nothing',
  'GET /api/v1/jobs query.batchId': '200 nothing',
  'GET /api/v1/jobs/{id} params.id': '404 job_not_found',
  'POST /api/v1/jobs/{id}/cancel params.id': '404 job_not_found',
  'GET /api/v1/jobs/{id}/output params.id': '404 job_not_found',
  'POST /api/v1/jobs/batch body.jobs.clusterId': '403 cluster_forbidden',
  'POST /api/v1/jobs/batch body.jobs.payload.targetNodeIds': '422 node_not_in_cluster',
  'GET /api/v1/jobs/batch/{batchId} params.batchId': '404 batch_not_found',
  'POST /api/v1/jobs/batch/{batchId}/cancel params.batchId': '404 batch_not_found',
  'POST /api/v1/jobs/batch/{batchId}/retry params.batchId': '404 batch_not_found',
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
  'POST /api/v1/webhooks/{id}/test params.id': '404 webhook_not_found',
  'GET /api/v1/webhooks/{id}/deliveries params.id': '404 webhook_not_found',
  'POST /api/v1/webhooks/{id}/deliveries/{deliveryId}/redeliver params.id': '404 webhook_not_found',
  'POST /api/v1/webhooks/{id}/deliveries/{deliveryId}/redeliver params.deliveryId': '404 delivery_not_found',
  'PATCH /api/v1/notifications body.ids': '204 nothing',
  'GET /api/v1/platform/audit query.actor': '200 nothing',
  'GET /api/v1/platform/audit query.resource': '200 nothing',
}

/** A platform administrator may make the first user of another organisation (D15): it learns whether there is one. */
const isOpenToPlatform = (name: string): boolean => name === 'POST /api/v1/users body.organisationId'

/** What belongs to one user is another user's as little as another organisation's. */
const isPrivate = (name: string): boolean => /\/users\/me\/|\/notifications|filterId/.test(name)

/** Modules and identity providers are the platform's: nobody of another organisation gets as far as their ids. */
const isOfPlatform = ({ name }: Row): boolean => / \/api\/(v1\/)?(modules|platform\/identity)/.test(name)

const places = rows
  .filter(({ endpoint: { access } }) => access !== 'public' && access !== 'relay')
  .filter((row) => !isOfPlatform(row))
  .flatMap((row) => idPlaces(row).map((place) => [`${row.name} ${place}`, row, place] as const))

test('the table holds every place where a request can name a thing, and no other', () => {
  expect(places.map(([name]) => name).toSorted()).toEqual(Object.keys(answers).toSorted())
})

/** Sends somebody's request with the thing of another, and tells what is heard and how often the store was written to. */
async function reach(row: Row, place: string, mine: Ask, theirs: Ask, { headers }: Person) {
  const before = writes()
  const { status, json } = await call(row, withForeign(mine, theirs, place), headers)
  const isEmpty = json === undefined || (json.totalCount === 0 && json.items.length === 0)
  return {
    heard: `${status} ${json?.error ?? (isEmpty ? 'nothing' : 'something')}`,
    message: json?.message,
    written: writes() - before,
  }
}

/** A request about ids that nobody has. */
const unknown = (ask: Ask): Ask =>
  JSON.parse(JSON.stringify(ask).replaceAll(/"([a-z]+)_[0-9a-z]{26}"/g, (_, prefix: IdPrefix) => `"${newId(prefix)}"`))

async function expectNotFound(row: Row, place: string, owner: Person, other: Person): Promise<void> {
  const [mine, theirs] = [await askOf(row, other), await askOf(row, owner)]
  expect(valueAt(theirs, place), 'The line in fixtures.ts must name it').toBeDefined()
  const foreign = await reach(row, place, mine, theirs, other)
  expect(foreign).toMatchObject({ heard: answers[`${row.name} ${place}`], written: 0 })
  expect(foreign).toEqual(await reach(row, place, mine, unknown(theirs), other))
}

test.each(places)('%s of another organisation is not found', async (name, row, place) => {
  const owner = await personOf('OrgAdmin')
  await expectNotFound(row, place, owner, await personOf('OrgAdmin'))
  if (!isOpenToPlatform(name)) await expectNotFound(row, place, owner, await personOf('PlatformAdmin'))
})

test.each(places.filter(([name]) => isPrivate(name)))('%s of a colleague is not found', async (_, row, place) => {
  const owner = await personOf('OrgAdmin')
  await expectNotFound(row, place, owner, await personOf('OrgAdmin', owner.organisationId))
})

const isShared = (row: Row): boolean => idPlaces(row).every((place) => !isPrivate(`${row.name} ${place}`))
const shared = new Set(places.map(([, row]) => row).filter(isShared))

// Else a fixture that nobody can use would pass for one that is guarded.
test.each([...shared])('$name succeeds for a colleague of whoever made the thing', async (row) => {
  const owner = await personOf('OrgAdmin')
  const colleague = await personOf('OrgAdmin', owner.organisationId)
  const { status, text } = await call(row, await askOf(row, owner), colleague.headers)
  expect(Object.keys(row.endpoint.responses), text).toContain(String(status))
})

test.each(places.filter(([name]) => answers[name] === '200 nothing'))(
  '%s finds something where it belongs to the organisation',
  async (_, row, place) => {
    const owner = await personOf('OrgAdmin')
    const colleague = await personOf('OrgAdmin', owner.organisationId)
    const theirs = await askOf(row, owner)
    expect((await reach(row, place, theirs, theirs, colleague)).heard).toBe('200 something')
  },
)
