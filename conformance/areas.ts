import { type Journeys } from './platform.ts'
import { apiTokens } from './journeys/api-tokens.ts'
import { audit } from './journeys/audit.ts'
import { auditChain } from './journeys/audit-chain.ts'
import { authentication } from './journeys/authentication.ts'
import { badInput } from './journeys/bad-input.ts'
import { badPaths } from './journeys/bad-paths.ts'
import { batchWork } from './journeys/batch-work.ts'
import { batches } from './journeys/batches.ts'
import { browserSessions } from './journeys/browser-sessions.ts'
import { clusterPages } from './journeys/cluster-pages.ts'
import { clusters } from './journeys/clusters.ts'
import { contract } from './journeys/contract.ts'
import { deliveries } from './journeys/deliveries.ts'
import { enrollment } from './journeys/enrollment.ts'
import { events } from './journeys/events.ts'
import { everyAnswer } from './journeys/every-answer.ts'
import { health } from './journeys/health.ts'
import { identity } from './journeys/identity.ts'
import { jobList } from './journeys/job-list.ts'
import { jobs } from './journeys/jobs.ts'
import { limits } from './journeys/limits.ts'
import { lists } from './journeys/lists.ts'
import { liveOutput } from './journeys/live-output.ts'
import { modules } from './journeys/modules.ts'
import { notifications } from './journeys/notifications.ts'
import { onRecord } from './journeys/on-record.ts'
import { ownAccount } from './journeys/own-account.ts'
import { permissions } from './journeys/permissions.ts'
import { portal } from './journeys/portal.ts'
import { preferences } from './journeys/preferences.ts'
import { presence } from './journeys/presence.ts'
import { relayWork } from './journeys/relay-work.ts'
import { repeats } from './journeys/repeats.ts'
import { sessions } from './journeys/sessions.ts'
import { setup } from './journeys/setup.ts'
import { sites } from './journeys/sites.ts'
import { tenancy } from './journeys/tenancy.ts'
import { timeline } from './journeys/timeline.ts'
import { updates } from './journeys/updates.ts'
import { users } from './journeys/users.ts'
import { webhooks } from './journeys/webhooks.ts'

/** All journeys, in this order: setup makes the administrator whom the others sign in as, and bad input uses up rate limits. */
export const areas: Record<string, Journeys> = {
  Health: health,
  Setup: setup,
  Authentication: authentication,
  Sessions: sessions,
  'Sessions of browsers': browserSessions,
  'Every answer': everyAnswer,
  Limits: limits,
  Contract: contract,
  Permissions: permissions,
  Users: users,
  'The own account': ownAccount,
  'API tokens': apiTokens,
  Tenancy: tenancy,
  Preferences: preferences,
  'The portal’s numbers': portal,
  'Repeated requests': repeats,
  Sites: sites,
  Clusters: clusters,
  'Pages of clusters': clusterPages,
  Enrollment: enrollment,
  'Presence of relays': presence,
  Jobs: jobs,
  'Lists of jobs': jobList,
  'Work of relays': relayWork,
  'Live output': liveOutput,
  Batches: batches,
  'Work of batches': batchWork,
  Modules: modules,
  'Identity providers': identity,
  Updates: updates,
  Timeline: timeline,
  Notifications: notifications,
  Events: events,
  Webhooks: webhooks,
  Deliveries: deliveries,
  Audit: audit,
  'On record is': onRecord,
  'Chain of the audit': auditChain,
  'Every list': lists,
  'Bad paths': badPaths,
  'Bad input': badInput,
}
