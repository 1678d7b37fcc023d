import type { Texts } from './text.ts'

const digest = 'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'

const checkFields = {
  name: ['Name of the check', 'table'],
  status: ['Result of the check', 'Healthy'],
  tags: [
    'Effect of a failure on the aggregate: `critical` makes it Unhealthy, `degradable` Degraded, `informational` has none. A check without tags counts as `degradable`',
    ['critical'],
  ],
  durationMs: ['Duration of the check in milliseconds', 4.2],
  description: ['Result in one sentence', 'The store is available.'],
} as const

const moduleChecks = Object.fromEntries(Object.entries(checkFields).map(([name, text]) => [`checks.${name}`, text]))

const count = (description: string): readonly [string, number] => [description, 3]

export const platformTexts: Texts = {
  'HealthStatus Readiness': {
    status: ['`ok`, or `unavailable` with status 503', 'ok'],
  },
  Readiness: {
    aggregate: ['Worst effect of the failing checks', 'Healthy'],
    checks: 'Checks of the platform and of modules',
  },
  HealthCheck: checkFields,
  Organisation: { name: 'Name of the organisation, unique on the platform', quotas: 'Quotas of the organisation' },
  OrganisationQuotas: { '': 'Quotas of an organisation; null uses the default of the platform' },
  OrganisationUpdate: {
    '': ['A change of quotas', { quotas: { clusters: 500, users: null } }],
    quotas: 'Quotas to change; omitted ones stay',
  },
  OrganisationUsage: {
    clusters: 'Registered clusters',
    'clusters.used': 'Number of clusters',
    users: 'Users, including those of identity providers',
    'users.used': 'Number of users',
    webhooks: 'Webhooks, including disabled ones',
    'webhooks.used': 'Number of webhooks',
    'activeJobs.used': 'Number of queued and running jobs',
  },
  UpdateCheck: {
    refused: ['Newer releases that cannot be applied', []],
    releaseNotesUrl: [undefined, 'https://example.com/releases/1.4.0'],
  },
  RefusedRelease: { version: 'Version of the release', reason: 'Why it cannot be applied' },
  UpdateRequest: {
    action: ['`apply` a release, or `rollback` to the previous version', 'apply'],
  },
  UpdateAccepted: {
    action: ['Operation that started', 'apply'],
    targetVersion: 'Version that serves after it',
    status: 'Always `InProgress`; the job has the result',
  },
  'CatalogItem Module ModuleDetail OrganisationModule': { name: ['Name for display', 'Hello World'] },
  'CatalogItem Module ModuleDetail': { description: ['One sentence about the module', 'Greets every new cluster.'] },
  listCatalog: { problems: [undefined, []] },
  CatalogItem: {
    installed: ['Whether a version of the module is installed', true],
    installedVersion: ['Installed version', '1.0.0'],
  },
  'Module ModuleDetail': {
    version: 'Installed version',
    state: ['State of the installation', 'Running'],
    health: ['Health by the last checks; `Unknown` if none is recent', 'Healthy'],
    checks: 'The last health checks',
    ...moduleChecks,
    'checks.checkedAt': 'Time of the check',
    image: [undefined, `registry.example.com/modules/hello@${digest}`],
    apiBasePath: ['Prefix of the paths of the API of the module', '/api/hello'],
    warnings: ['Problems that do not prevent the module from running', []],
    lastError: 'The last failure of an installation or of the running module',
    'lastError.code': ['Kind of failure', 'PLAT-MOD-5006'],
    'lastError.message': ['Cause of the failure', 'The module did not become healthy.'],
    'lastError.at': 'Time of the failure',
  },
  ModuleDetail: {
    backgroundJobs: 'Calls that the platform makes at intervals',
    'backgroundJobs.description': ['Purpose of the calls', 'Reports the number of greetings.'],
    permissionsRequired: ['Permissions of a caller that the module can see', ['clusters:read']],
  },
  NavSlot: { slotId: ['Menu of the portal that contains the entry', 'nav.primary'], label: 'Text of the entry' },
  InstallAccepted: {
    version: 'Version that is installed',
    status: 'Always `Installing`; the job has the result',
    imageDigest: ['Digest of the image', digest],
  },
  UninstallAccepted: { status: 'Always `Uninstalling`; the job has the result' },
  ImageInstallation: { imageRef: 'Image with its registry and a tag or digest' },
  CatalogInstallation: { '': ['The version to install', { version: '1.4.0' }] },
  OrganisationModuleChange: {
    enabled: ['Whether the module receives events of the organisation', true],
  },
  PortalConfiguration: {
    setupComplete: ['Whether setup is complete', true],
    platformName: 'Name of the platform',
    publicUrl: 'Address of the portal',
    version: 'Version of the platform',
  },
  PortalSummary: {
    'clusters.total': count('Number of clusters'),
    'clusters.byStatus': 'Clusters by status',
    'jobs.total': count('Number of stored jobs'),
    'jobs.byStatus': 'Jobs by status',
    health: 'Health of the platform',
    'health.aggregate': ['Worst effect of the failing checks', 'Healthy'],
  },
  ClusterCounts: {
    '': 'Clusters by stored status, which the last heartbeat or sweep set',
    Healthy: count('Clusters whose relay and nodes are online'),
    Degraded: count('Clusters with an offline node or an overdue heartbeat'),
    Pending: count('Clusters without a relay'),
    Offline: count('Clusters whose relay is silent'),
  },
  JobCounts: {
    '': 'Jobs by status',
    Queued: count('Jobs that no relay has claimed yet'),
    Running: count('Jobs that run'),
    Completed: count('Jobs that completed'),
    Failed: count('Jobs that failed'),
    Cancelled: count('Jobs that were cancelled'),
  },
  ModuleCounts: { installed: count('Installed modules') },
  StoredUpdateCheck: { latestVersion: ['The newest applicable release at that time', '1.4.0'] },
  HistoryPoint: {
    'clusters.byStatus': 'Clusters by status',
    jobs: 'Jobs that were accepted or ended during the interval',
  },
  History: { 'previous.clusters.byStatus': 'Clusters by status' },
  NavigationEntry: {
    slotId: ['Menu that contains the entry', 'nav.primary'],
    id: 'Identifier of the entry, unique in its menu',
    label: 'Text of the entry',
    route: 'Path of the page',
  },
  WidgetPlacement: { widgetId: 'Identifier of the widget in the portal' },
  'DashboardLayout DashboardLayoutUpdate': { layout: 'Widgets with their positions' },
  DashboardLayoutUpdate: { updatedAt: 'Accepted and ignored, so that a client can send back the response of GET' },
  'SavedFilter SavedFilterCreation': { name: 'Name of the filter' },
  SavedFilter: { context: 'The list that the filter applies to', filter: 'Filter parameters' },
  Notification: {
    type: 'Kind of notification',
    title: 'One line',
    body: 'Details in one or a few sentences',
    read: 'Whether the caller has marked it as read',
  },
  listNotifications: { type: 'Only notifications of this type', severity: 'Only notifications of this severity' },
  NotificationUpdate: {
    '': ['The notifications to mark as read', { ids: ['notif_01jd8w5k3zr9x2m4c7t6v0b1qa'] }],
  },
  AuditActor: {
    '': 'Author of an entry',
    kind: 'Kind of author',
    id: 'Identifier of the user or relay, or `system`',
  },
  'AuditEntry AuditEntryRequest': {
    action: 'The action, as `<resource>.<verb>`',
    resource: 'Identifier of the resource that changed',
    detail: 'Further information, such as a name or the changed fields',
  },
  AuditEntry: { hash: 'SHA-256 of the entry without this member, in lower-case hex' },
  exportAudit: { format: 'Format of the file' },
  AuditCheckpoint: {
    checkpoint: [undefined, 'eyJhbGciOiJFZERTQSIsInR5cCI6ImF1ZGl0LWNoZWNrcG9pbnQrandzIn0.eyJzZXEiOjF9.c2lnbmF0dXJl'],
    at: 'Time of the checkpoint',
  },
  AuditVerification: {
    valid: ['Whether all checked entries match their hashes, the previous entries and the checkpoint', true],
  },
  'Webhook CreatedWebhook': {
    url: 'Address that receives the events',
    events: 'Event types that it receives; `*` matches several types',
    enabled: 'Whether events are delivered',
  },
  Delivery: {
    status: '`Pending` until an attempt succeeds or the last one fails',
    eventType: 'CloudEvents type of the event',
  },
  DeliveryAttempt: { at: 'Time of the attempt', durationMs: 'Duration of the attempt in milliseconds' },
  EventDescription: { type: 'CloudEvents type', description: 'When the event occurs' },
}
