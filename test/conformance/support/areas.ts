import { type Journeys } from './platform.ts'
import { apiTokens } from '../api-tokens.ts'
import { audit } from '../audit.ts'
import { auditChain } from '../audit-chain.ts'
import { authentication } from '../authentication.ts'
import { badInput } from '../bad-input.ts'
import { badPaths } from '../bad-paths.ts'
import { batchWork } from '../batch-work.ts'
import { batches } from '../batches.ts'
import { browserSessions } from '../browser-sessions.ts'
import { clusterPages } from '../cluster-pages.ts'
import { clusters } from '../clusters.ts'
import { contract } from '../contract.ts'
import { deliveries } from '../deliveries.ts'
import { enrollment } from '../enrollment.ts'
import { events } from '../events.ts'
import { everyAnswer } from '../every-answer.ts'
import { health } from '../health.ts'
import { identity } from '../identity.ts'
import { jobList } from '../job-list.ts'
import { jobs } from '../jobs.ts'
import { limits } from '../limits.ts'
import { lists } from '../lists.ts'
import { liveOutput } from '../live-output.ts'
import { modules } from '../modules.ts'
import { notifications } from '../notifications.ts'
import { onRecord } from '../on-record.ts'
import { ownAccount } from '../own-account.ts'
import { permissions } from '../permissions.ts'
import { portal } from '../portal.ts'
import { preferences } from '../preferences.ts'
import { presence } from '../presence.ts'
import { relayWork } from '../relay-work.ts'
import { repeats } from '../repeats.ts'
import { sessions } from '../sessions.ts'
import { setup } from '../setup.ts'
import { sites } from '../sites.ts'
import { tenancy } from '../tenancy.ts'
import { timeline } from '../timeline.ts'
import { updates } from '../updates.ts'
import { users } from '../users.ts'
import { webhooks } from '../webhooks.ts'

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
