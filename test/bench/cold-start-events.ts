import { newId } from '@platform/core/id'
import type { TestRequest } from '../support/request.ts'
import { eventFor } from './support/handlers.ts'
import { changeRequest, getRequest, heartbeatRequest, jobRequest } from './support/requests.ts'
import { newRelay, sendJson, type Tenant } from './support/tenant.ts'

export type FirstEvent = () => Promise<object>

const message = (body: object) => async () => ({ Records: [{ messageId: 'bench', body: JSON.stringify(body) }] })
const scheduledEvent = async () => ({})

export async function firstEvents({ accessToken, organisationId }: Tenant): Promise<Record<string, FirstEvent>> {
  const relay = await newRelay(accessToken)
  const { id: jobId } = await sendJson('jobs', jobRequest(accessToken, relay.clusterId))
  await sendJson('jobs', changeRequest('POST', `/api/v1/jobs/${jobId}/cancel`, accessToken))
  const request = (create: () => TestRequest | Promise<TestRequest>) => async () => eventFor(await create())
  const get = (target: string) => request(() => getRequest(target, accessToken))
  const getPublic = (target: string) => request(() => ({ target }))
  const job = message({ organisationId, jobId: newId('job') })
  const batch = message({ organisationId, batchId: newId('batch') })
  return {
    health: getPublic('/health/ready'),
    setup: getPublic('/api/v1/setup/status'),
    auth: get('/api/v1/auth/me'),
    clusters: get(`/api/v1/clusters/${relay.clusterId}`),
    sites: get('/api/v1/sites'),
    jobs: get(`/api/v1/jobs/${jobId}`),
    preferences: get('/api/v1/users/me/dashboard-layout'),
    users: get('/api/v1/users/me/sessions'),
    platform: get('/api/v1/platform/organisations'),
    audit: get('/api/v1/platform/audit'),
    // Signed requests are valid once.
    relay: request(() => heartbeatRequest(relay)),
    meta: getPublic('/.well-known/jwks.json'),
    notifications: get('/api/v1/notifications'),
    webhooks: get('/api/v1/webhooks'),
    modules: get('/api/v1/modules'),
    'portal-data': get('/api/v1/portal/summary'),
    identity: get('/api/v1/platform/identity/providers'),
    updates: get('/api/v1/platform/updates/check'),
    portal: getPublic('/'),
    'gateway/modules': get('/api/hello'),
    'queue/batches': batch,
    'queue/batches-dead-letter': batch,
    'queue/events': message({ organisationId: newId('org') }),
    'queue/webhooks': message({ organisationId, webhookId: newId('hook') }),
    'queue/modules': message({ organisationId, moduleId: 'none' }),
    'queue/installs': job,
    'queue/installs-dead-letter': job,
    'queue/updates': job,
    'queue/updates-dead-letter': job,
    'schedule/sweep': scheduledEvent,
    'schedule/heartbeat': scheduledEvent,
    'schedule/catalog': scheduledEvent,
    'schedule/updates': scheduledEvent,
    'schedule/write-check': scheduledEvent,
    'schedule/checkpoints': scheduledEvent,
    bootstrap: scheduledEvent,
  }
}
