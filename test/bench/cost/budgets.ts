/** The maximum use of one operation or flow. Messages and secret reads are 0 if absent. */
export interface Budget {
  storeCalls: number
  writeUnits: number
  messages?: number
  secretReads?: number
}

/** A write of two units, and up to two index entries. */
const outboxCheckUnits = 4

const reads = (storeCalls: number): Budget => ({ storeCalls, writeUnits: 0 })
/**
 * A change enqueues its projections with one message. A change with neither an `Idempotency-Key` nor a preceding read
 * also checks the rights of its session, with four write units.
 */
const changes = (storeCalls: number, writeUnits: number): Budget => ({
  storeCalls,
  // The first change of an organisation in a while also schedules the check of its outbox.
  writeUnits: writeUnits + outboxCheckUnits,
  messages: 1,
})

export const operationBudgets: Readonly<Record<string, Budget>> = {
  'POST /relay/heartbeat, with a job': { storeCalls: 4, writeUnits: 1 },
  'POST /relay/heartbeat, with a claim': { storeCalls: 6, writeUnits: 15, messages: 1 },
  'POST /relay/jobs/{id}/claim': changes(2, 10),
  'POST /relay/heartbeat': { storeCalls: 2, writeUnits: 1 },
  'POST /relay/jobs/{id}/output': { storeCalls: 2, writeUnits: 4 },
  'POST /relay/jobs/{id}/complete': changes(3, 9),
  'POST /relay/jobs/{id}/complete, with output': changes(2, 9),
  'POST /relay/goodbye': changes(2, 16),
  'POST /jobs/batch, full': changes(2, 26),
  // At most once a minute for each process and access token.
  'GET /roles, the first request of a session in a minute': reads(1),
  'GET /health/ready': reads(2),
  'GET /health/startup': reads(1),
  'POST /auth/login': changes(4, 24),
  'POST /auth/local-login': changes(4, 24),
  'POST /auth/refresh': { storeCalls: 3, writeUnits: 6 },
  'POST /auth/logout': changes(1, 8),
  'GET /auth/me': reads(1),
  'POST /auth/session': changes(4, 26),
  'POST /auth/session/refresh': { storeCalls: 3, writeUnits: 6 },
  'DELETE /auth/session': changes(2, 8),
  'GET /clusters': reads(2),
  'POST /clusters': changes(2, 22),
  'GET /clusters/{id}': reads(1),
  'PATCH /clusters/{id}': changes(3, 12),
  'DELETE /clusters/{id}': changes(3, 32),
  'POST /clusters/{id}/enrollment-token': changes(2, 10),
  'GET /clusters/{id}/timeline': reads(2),
  'GET /sites': reads(1),
  'POST /sites': changes(1, 14),
  'DELETE /sites/{id}': changes(2, 10),
  'POST /jobs': changes(2, 20),
  'GET /jobs': reads(2),
  'POST /jobs/batch': changes(3, 22),
  'GET /jobs/batch': reads(3),
  'GET /jobs/batch/{id}': reads(1),
  'POST /jobs/batch/{id}/cancel': changes(2, 6),
  'POST /jobs/batch/{id}/retry': changes(7, 22),
  'GET /jobs/{id}': reads(1),
  'POST /jobs/{id}/cancel': changes(2, 14),
  'GET /jobs/{id}/output': reads(1),
  'GET /users/me/dashboard-layout': reads(1),
  'PATCH /users/me/dashboard-layout': changes(1, 10),
  'GET /users/me/saved-filters': reads(1),
  'POST /users/me/saved-filters': changes(1, 12),
  'DELETE /users/me/saved-filters/{id}': changes(1, 12),
  'PUT /users/me/password': changes(4, 16),
  'GET /users/me/sessions': reads(3),
  'DELETE /users/me/sessions/{id}': changes(2, 8),
  'GET /users/me/tokens': reads(1),
  'POST /users/me/tokens': changes(2, 8),
  'DELETE /users/me/tokens/{id}': changes(2, 8),
  'GET /users': reads(2),
  'GET /roles': reads(0),
  'POST /users': changes(2, 10),
  'GET /users/{id}': reads(1),
  'PATCH /users/{id}': changes(2, 6),
  'DELETE /users/{id}': changes(2, 14),
  'DELETE /users/{id}/sessions': changes(2, 8),
  'DELETE /users/{id}/tokens': changes(2, 8),
  'GET /webhooks': reads(1),
  'POST /webhooks': changes(2, 8),
  'PATCH /webhooks/{id}': changes(2, 6),
  'DELETE /webhooks/{id}': changes(1, 12),
  'POST /webhooks/{id}/rotate-secret': changes(2, 6),
  'POST /webhooks/{id}/test': { storeCalls: 2, writeUnits: 14, messages: 2 },
  'GET /webhooks/{id}/deliveries': reads(2),
  'POST /webhooks/{id}/deliveries/{id}/redeliver': { storeCalls: 3, writeUnits: 16, messages: 2 },
  'GET /organisation/settings': reads(1),
  'PATCH /organisation/settings': changes(2, 6),
  'GET /platform/organisations': reads(2),
  'POST /platform/organisations': changes(2, 14),
  'PATCH /platform/organisations/{id}': { storeCalls: 2, writeUnits: 14, messages: 2 },
  'GET /organisation/usage': reads(1),
  'GET /platform/identity/providers': reads(2),
  'POST /platform/identity/providers': changes(6, 24),
  'DELETE /platform/identity/providers/{id}': changes(4, 22),
  'POST /platform/identity/providers/{id}/test': { storeCalls: 3, writeUnits: 8, messages: 1, secretReads: 1 },
  'POST /platform/identity/providers/{id}/consent': changes(3, 12),
  'GET /auth/providers': reads(2),
  'GET /platform/updates/check': { storeCalls: 2, writeUnits: 2 },
  'PUT /platform/updates/apply': { storeCalls: 2, writeUnits: 18, messages: 2 },
  'GET /modules/catalog': reads(2),
  'POST /modules/catalog/scan': { storeCalls: 2, writeUnits: 8, messages: 2 },
  'GET /modules': reads(1),
  'GET /modules/{id}': reads(1),
  'POST /modules/{id}/install': { storeCalls: 3, writeUnits: 22, messages: 2 },
  'DELETE /modules/{id}': { storeCalls: 2, writeUnits: 22, messages: 2 },
  'POST /api/modules/install': { storeCalls: 2, writeUnits: 22, messages: 2 },
  'DELETE /api/modules/{id}': { storeCalls: 2, writeUnits: 22, messages: 2 },
  'GET /organisation/modules': reads(2),
  'PUT /organisation/modules/{id}': changes(2, 6),
  'GET /portal/configuration': reads(0),
  'GET /portal/summary': reads(3),
  'GET /portal/history': reads(4),
  'GET /portal/navigation': reads(1),
  'GET /notifications': reads(1),
  'PATCH /notifications': changes(2, 12),
  'POST /platform/audit': changes(1, 8),
  'GET /platform/audit': reads(3),
  'GET /platform/audit/checkpoint': { storeCalls: 1, writeUnits: 0, secretReads: 1 },
  'GET /platform/audit/export': { ...changes(3, 8), secretReads: 1 },
  'GET /platform/audit/verify': reads(2),
  'GET /.well-known/jwks.json': reads(1),
}

/** Flows include the messages that follow, until all queues are empty. Expired caches may add a read or two. */
export const flowBudgets: Readonly<Record<string, Budget>> = {
  // Includes the cluster checks that the sweep plans.
  'schedule/sweep': { storeCalls: 31, writeUnits: 1, messages: 5 },
  // Includes two status changes, and a cooldown for each.
  'a cluster that goes offline': { storeCalls: 8, writeUnits: 32, messages: 2 },
  'schedule/heartbeat': reads(1),
  'schedule/catalog': { storeCalls: 2, writeUnits: 1 },
  'schedule/updates': { storeCalls: 3, writeUnits: 2 },
  'schedule/write-check': { storeCalls: 1, writeUnits: 1 },
  /** No checkpoint target is configured; with a target, the schedule reads once for each organisation. */
  'schedule/checkpoints': reads(0),
  'GET cluster': reads(1),
  'list clusters, a page of 20': reads(2),
  'sign in': { storeCalls: 12, writeUnits: 40, messages: 1 },
  'refresh a session': { storeCalls: 3, writeUnits: 6 },
  'a change (PATCH cluster)': { storeCalls: 12, writeUnits: 28, messages: 1 },
  'a cluster, registered and enrolled': { storeCalls: 23, writeUnits: 84, messages: 3, secretReads: 1 },
  'an hour of an idle relay': { storeCalls: 240, writeUnits: 180 },
  'a change with one webhook': { storeCalls: 22, writeUnits: 52, messages: 2 },
  'a single job': { storeCalls: 15, writeUnits: 46, messages: 3 },
  'GET job': reads(1),
  'a job of a batch': { storeCalls: 11, writeUnits: 42, messages: 3 },
}
