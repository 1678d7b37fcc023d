import { handler as audit } from '../../../functions/audit.ts'
import { handler as clusters } from '../../../functions/clusters.ts'
import { handler as notifications } from '../../../functions/notifications.ts'
import { handler as platform } from '../../../functions/platform.ts'
import { handler as preferences } from '../../../functions/preferences.ts'
import { handler as sites } from '../../../functions/sites.ts'
import { handler as users } from '../../../functions/users.ts'
import { handler as webhooks } from '../../../functions/webhooks.ts'
import { jsonRequest, type TestRequest } from '../../support/request.ts'
import { administrator, bearer, getting, registration, type Tenant } from '../support/tenant.ts'
import type { Perform } from './perform.ts'

/** What a user does for itself and others, one call after another. */
export async function tenancy(tenant: Tenant, perform: Perform): Promise<void> {
  await forItself(tenant, perform)
  await byToken(tenant, perform)
  await forOthers(tenant, perform)
}

const changing = (method: string, target: string, accessToken: string, body: object = {}): TestRequest => ({
  ...jsonRequest(target, body, bearer(accessToken)),
  method,
})

async function forItself({ accessToken }: Tenant, perform: Perform): Promise<void> {
  const [layout, filters] = ['/api/v1/users/me/dashboard-layout', '/api/v1/users/me/saved-filters']
  const widget = { widgetId: 'cluster-health', x: 0, y: 0, w: 4, h: 4 }
  const saving = changing('PATCH', layout, accessToken, { layout: [widget] })
  await perform('PATCH /users/me/dashboard-layout', preferences, saving)
  await perform('GET /users/me/dashboard-layout', preferences, getting(layout, accessToken))

  const filter = { name: 'What is offline', context: 'clusters', filter: { status: 'Offline' } }
  const creation = jsonRequest(filters, filter, bearer(accessToken))
  const { json: saved } = await perform('POST /users/me/saved-filters', preferences, creation)
  await perform('GET /users/me/saved-filters', preferences, getting(filters, accessToken))
  const filtered = getting(`/api/v1/clusters?filterId=${saved.id}`, accessToken)
  await perform('GET /clusters, by a saved filter', clusters, filtered)
  const removal = changing('DELETE', `${filters}/${saved.id}`, accessToken)
  await perform('DELETE /users/me/saved-filters/{id}', preferences, removal)

  await perform('GET /users/me/sessions', users, getting('/api/v1/users/me/sessions', accessToken))
  await perform('GET /notifications', notifications, getting('/api/v1/notifications', accessToken))
  const marking = changing('PATCH', '/api/v1/notifications', accessToken, { markAllRead: true })
  await perform('PATCH /notifications, all are read', notifications, marking)
  await perform('GET /webhooks, none', webhooks, getting('/api/v1/webhooks', accessToken))
}

/** The same call with an access token is a row of its own. */
async function byToken({ accessToken }: Tenant, perform: Perform): Promise<void> {
  const tokens = '/api/v1/users/me/tokens'
  const { json: cluster } = await perform('', clusters, registration(accessToken))
  const { json: created } = await perform(
    'POST /users/me/tokens',
    users,
    jsonRequest(tokens, { name: 'pipeline' }, bearer(accessToken)),
  )
  const reading = getting(`/api/v1/clusters/${cluster.id}`, created.token)
  // The first use of a token in an hour is written down.
  await perform('', clusters, reading)
  await perform('GET /clusters/{id}, by an API token', clusters, reading)
  await perform('GET /users/me/tokens', users, getting(tokens, accessToken))
  await perform('DELETE /users/me/tokens/{id}', users, changing('DELETE', `${tokens}/${created.id}`, accessToken))
}

let count = 0

async function forOthers({ accessToken }: Tenant, perform: Perform): Promise<void> {
  const name = `bench-${++count}`
  const headers = { ...bearer(accessToken), 'Idempotency-Key': name }
  const creation = jsonRequest('/api/v1/sites', { name }, headers)
  const { json: site } = await perform('POST /sites, repeatable', sites, creation)
  await perform('POST /sites, repeated', sites, creation)
  await perform('DELETE /sites/{id}', sites, changing('DELETE', `/api/v1/sites/${site.id}`, accessToken))

  const organisations = '/api/v1/platform/organisations'
  await perform('POST /platform/organisations', platform, jsonRequest(organisations, { name }, bearer(accessToken)))
  await perform('GET /platform/organisations', platform, getting(organisations, accessToken))

  const account = { username: name, email: `${name}@example.com`, password: administrator.password, roles: ['Viewer'] }
  const { json: user } = await perform('POST /users', users, jsonRequest('/api/v1/users', account, bearer(accessToken)))
  const path = `/api/v1/users/${user.id}`
  await perform('GET /users', users, getting('/api/v1/users', accessToken))
  await perform('GET /users/{id}', users, getting(path, accessToken))
  await perform('PATCH /users/{id}', users, changing('PATCH', path, accessToken, { roles: ['Operator'] }))
  await perform('DELETE /users/{id}', users, changing('DELETE', path, accessToken))

  const entry = { action: 'change.approved', resource: name, detail: 'by the change board' }
  await perform('POST /platform/audit', audit, jsonRequest('/api/v1/platform/audit', entry, bearer(accessToken)))
  await perform('GET /platform/audit', audit, getting('/api/v1/platform/audit', accessToken))
}
