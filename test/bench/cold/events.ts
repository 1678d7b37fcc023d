import { newId } from '@platform/core/id'
import { send, jsonRequest, type TestRequest } from '../../support/request.ts'
import { handler as jobs } from '../../../functions/jobs.ts'
import { eventOf } from '../support/handlers.ts'
import { beat } from '../support/relay.ts'
import { accepted, bearer, getting, newCluster, type Tenant } from '../support/tenant.ts'

/** Makes the first event of a process. */
export type FirstEvent = () => Promise<object>

const request =
  (sent: () => TestRequest | Promise<TestRequest>): FirstEvent =>
  async () =>
    eventOf(await sent())

const message =
  (body: object): FirstEvent =>
  async () => ({ Records: [{ messageId: 'bench', body: JSON.stringify(body) }] })

/** A first event of every function: the cheapest that asks the store for something. */
export async function firstEvents({ accessToken, organisationId }: Tenant) {
  const { clusterId, relay } = await newCluster(accessToken)
  const submission = { clusterId, type: 'InvokeScript', payload: { script: 'uname' } }
  const submitted = await send(jobs, jsonRequest('/api/v1/jobs', submission, bearer(accessToken)))
  const { id: jobId } = accepted(submitted).json
  accepted(await send(jobs, jsonRequest(`/api/v1/jobs/${jobId}/cancel`, {}, bearer(accessToken))))
  const get = (target: string) => request(() => getting(target, accessToken))
  return {
    health: request(() => ({ target: '/health/ready' })),
    setup: request(() => ({ target: '/api/v1/setup/status' })),
    auth: get('/api/v1/auth/me'),
    clusters: get(`/api/v1/clusters/${clusterId}`),
    sites: get('/api/v1/sites'),
    jobs: get(`/api/v1/jobs/${jobId}`),
    preferences: get('/api/v1/users/me/dashboard-layout'),
    users: get('/api/v1/users/me/sessions'),
    platform: get('/api/v1/platform/organisations'),
    audit: get('/api/v1/platform/audit'),
    // Works once: every start has its own.
    relay: request(() => beat(relay)),
    meta: request(() => ({ target: '/.well-known/jwks.json' })),
    notifications: get('/api/v1/notifications'),
    webhooks: get('/api/v1/webhooks'),
    modules: get('/api/v1/modules'),
    'portal-data': get('/api/v1/portal/summary'),
    identity: get('/api/v1/platform/identity/providers'),
    updates: get('/api/v1/platform/updates/check'),
    portal: request(() => ({ target: '/' })),
    // No module answers it, which the store has told.
    'gateway/modules': get('/api/hello'),
    'queue/batches': message({ organisationId, batchId: newId('batch') }),
    'queue/batches-dead-letter': message({ organisationId, batchId: newId('batch') }),
    'queue/events': message({ organisationId: newId('org') }),
    'queue/jobs-dead-letter': message({ organisationId, jobId: newId('job') }),
    'queue/webhooks': message({ organisationId, webhookId: newId('hook') }),
    'queue/jobs': message({ organisationId, jobId }),
    'queue/modules': message({ organisationId, moduleId: 'nothing' }),
    'queue/updates': message({ organisationId, jobId: newId('job') }),
    'queue/updates-dead-letter': message({ organisationId, jobId: newId('job') }),
    'schedule/sweep': async () => ({}),
    'schedule/heartbeat': async () => ({}),
    'schedule/catalog': async () => ({}),
    'schedule/updates': async () => ({}),
    bootstrap: async () => ({}),
  }
}
