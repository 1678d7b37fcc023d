import * as apiToken from './api-token.ts'
import * as audit from './audit.ts'
import * as auth from './auth.ts'
import * as batch from './batch.ts'
import * as browserSession from './browser-session.ts'
import * as catalog from './catalog.ts'
import * as cluster from './cluster.ts'
import type { EndpointDefinition } from './endpoint.ts'
import * as enrollmentKey from './enrollment-key.ts'
import * as event from './event.ts'
import * as health from './health.ts'
import * as history from './history.ts'
import * as identity from './identity.ts'
import * as job from './job.ts'
import * as jobGroup from './job-group.ts'
import * as jobOutput from './job-output.ts'
import * as meta from './meta.ts'
import * as module from './module.ts'
import * as notification from './notification.ts'
import * as organisation from './organisation.ts'
import * as portal from './portal.ts'
import * as preference from './preference.ts'
import * as relay from './relay.ts'
import * as relayUpdate from './relay-update.ts'
import * as session from './session.ts'
import * as setup from './setup.ts'
import * as signIn from './sign-in.ts'
import * as site from './site.ts'
import * as target from './target.ts'
import * as timeline from './timeline.ts'
import * as update from './update.ts'
import * as user from './user.ts'
import * as webhook from './webhook.ts'

/**
 * The route table: function name → its endpoints. Each function is one Lambda function and one file,
 * `functions/<name>.ts`. The gateways, grants, OpenAPI document and table-driven tests are derived from it.
 */
export const functions = {
  health: [health.live, health.ready, health.startup],
  setup: [setup.getSetupStatus, setup.completeSetup],
  auth: [
    auth.login,
    auth.localLogin,
    auth.refresh,
    auth.logout,
    auth.me,
    browserSession.beginSession,
    browserSession.refreshSession,
    browserSession.endBrowserSession,
  ],
  clusters: [
    cluster.listClusters,
    cluster.registerCluster,
    cluster.listLabels,
    cluster.labelClusters,
    cluster.moveClusters,
    target.resolveTarget,
    cluster.getCluster,
    cluster.updateCluster,
    cluster.deleteCluster,
    cluster.issueEnrollmentToken,
    timeline.getClusterTimeline,
    cluster.listNodes,
    cluster.approveCluster,
    enrollmentKey.listEnrollmentKeys,
    enrollmentKey.createEnrollmentKey,
    enrollmentKey.deleteEnrollmentKey,
    relayUpdate.listRelayUpdates,
    relayUpdate.createRelayUpdate,
    relayUpdate.getRelayUpdate,
    relayUpdate.listRelayUpdateClusters,
    relayUpdate.cancelRelayUpdate,
  ],
  sites: [site.listSites, site.createSite, site.deleteSite],
  jobs: [
    job.submitJob,
    job.listJobs,
    batch.submitBatch,
    batch.listBatches,
    batch.getBatch,
    batch.cancelBatch,
    batch.retryBatch,
    jobGroup.getBatchGroups,
    jobGroup.listGroupClusters,
    jobGroup.listBatchResults,
    job.getJob,
    job.cancelJob,
    jobOutput.getJobOutput,
  ],
  preferences: [
    preference.getDashboardLayout,
    preference.updateDashboardLayout,
    preference.listSavedFilters,
    preference.createSavedFilter,
    preference.deleteSavedFilter,
  ],
  users: [
    user.changePassword,
    session.listSessions,
    session.endSession,
    apiToken.listApiTokens,
    apiToken.createApiToken,
    apiToken.deleteApiToken,
    user.listUsers,
    user.listRoles,
    user.createUser,
    user.getUser,
    user.updateUser,
    user.deleteUser,
    session.endUserSessions,
    apiToken.revokeUserTokens,
  ],
  webhooks: [
    webhook.listWebhooks,
    webhook.createWebhook,
    webhook.changeWebhook,
    webhook.deleteWebhook,
    webhook.rotateWebhookSecret,
    webhook.testWebhook,
    webhook.listDeliveries,
    webhook.redeliver,
  ],
  platform: [
    organisation.listOrganisations,
    organisation.createOrganisation,
    organisation.updateOrganisation,
    organisation.getOrganisationUsage,
    organisation.getOrganisationSettings,
    organisation.updateOrganisationSettings,
    setup.getPlatformSettings,
    setup.updatePlatformSettings,
  ],
  identity: [
    identity.listProviders,
    identity.configureProvider,
    identity.deleteProvider,
    identity.testProvider,
    identity.requestConsent,
    identity.consentReturned,
    identity.consentPosted,
    signIn.listSignInOptions,
    signIn.authorize,
    signIn.callback,
    signIn.exchangeCode,
  ],
  updates: [update.checkForUpdate, update.applyUpdate],
  modules: [
    catalog.listCatalog,
    catalog.scanCatalog,
    module.listModules,
    module.getModule,
    module.installModule,
    module.uninstallModule,
    module.installImage,
    module.uninstallImage,
    module.listOrganisationModules,
    module.setOrganisationModule,
  ],
  'portal-data': [portal.getPortalConfiguration, portal.getPortalSummary, history.getHistory, portal.getNavigation],
  notifications: [notification.listNotifications, notification.updateNotifications],
  audit: [audit.addAuditEntry, audit.listAuditEntries, audit.exportAudit, audit.getAuditCheckpoint, audit.verifyAudit],
  relay: [
    relay.enroll,
    relay.heartbeat,
    relay.claimJob,
    relay.reportOutput,
    relay.completeJob,
    relay.completeJobs,
    relay.goodbye,
  ],
  meta: [
    meta.getOpenApi,
    meta.getDocs,
    meta.getKeys,
    meta.getRelayProgram,
    event.getEventCatalog,
    meta.getManifestSchema,
  ],
} as const satisfies Record<string, readonly EndpointDefinition[]>

/** Name of a function that serves endpoints. */
export type FunctionName = keyof typeof functions

const nouns = [
  apiToken,
  audit,
  auth,
  batch,
  browserSession,
  catalog,
  cluster,
  enrollmentKey,
  event,
  health,
  history,
  identity,
  job,
  jobGroup,
  jobOutput,
  meta,
  module,
  notification,
  organisation,
  portal,
  preference,
  relay,
  relayUpdate,
  session,
  setup,
  signIn,
  site,
  target,
  timeline,
  update,
  user,
  webhook,
]
const exportNames = new Map<unknown, string>(
  nouns.flatMap((noun) => Object.entries(noun).map(([name, value]) => [value, name] as const)),
)

function nameOf(endpoint: EndpointDefinition): string {
  const name = exportNames.get(endpoint)
  if (name === undefined) throw new Error(`${endpoint.path} is not exported by a file in nouns.`)
  return name
}

/** An endpoint with its function. `operationId` is the name of the endpoint's export. */
export interface Route {
  function: FunctionName
  operationId: string
  method: string
  endpoint: EndpointDefinition
}

const isFunction = (name: string): name is FunctionName => Object.hasOwn(functions, name)

/** All endpoints of the platform, in the order of the table. */
export const routes: readonly Route[] = Object.keys(functions)
  .filter(isFunction)
  .flatMap((name) =>
    functions[name].map((endpoint) => ({
      function: name,
      operationId: nameOf(endpoint),
      method: endpoint.method.toUpperCase(),
      endpoint,
    })),
  )

/** Each path with the function that serves all its methods. Gateways route by path, and functions by method. */
export const routePaths: readonly (readonly [path: string, functionName: FunctionName])[] = [
  ...new Map(routes.map((route) => [route.endpoint.path, route.function])),
]
