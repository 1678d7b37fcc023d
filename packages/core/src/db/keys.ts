/**
 * The single-table design: the keys of all items, and their indexes.
 * Partition keys of tenant data include the organisation, so that ids of other organisations are not found.
 *
 * Indexes project keys only. Each index sort key ends with the item's id, so that entries are unique.
 *   gsi1 (gsi1pk, id): clusters by status; jobs of a cluster; operations by type; batches; sessions; audit entries by
 *        actor; deliveries
 *   gsi2 (gsi2pk, id): clusters by type; jobs of an organisation; audit entries by action
 *   gsi3 (gsi3pk, id): clusters by type and status; jobs of an organisation by status; audit entries by resource
 *   due  (duepk, duesk): items for the sweep, by due time
 *
 * `ttl` (seconds) lets the store delete an item. The code also checks expiry, because the store deletes late.
 */

/** A primary key. */
export interface Key {
  pk: string
  sk: string
}

export type IndexName = 'gsi1' | 'gsi2' | 'gsi3' | 'due'

/** Normalises text for case-insensitive comparison. */
export const fold = (name: string): string => name.normalize('NFC').toLowerCase()

/** Setup state, the initial admin token's hash, and the number of API starts. */
export const platform = (): Key => ({ pk: 'PLATFORM', sk: 'STATE' })

/** Public keys of access tokens. Read once per process, and again for an unknown key. */
export const accessKeys = (): Key => ({ pk: 'PLATFORM', sk: 'ACCESS-KEYS' })

/** Organisations, newest last. */
export const organisation = (organisationId: string): Key => ({ pk: 'ORGANISATIONS', sk: organisationId })
export const organisationName = (name: string): Key => ({ pk: `ORGANISATION-NAME#${fold(name)}`, sk: 'NAME' })
/** Offset index of organisations. */
export const organisationOffsets = (): Key => ({ pk: 'PLATFORM', sk: 'ORGANISATION-OFFSETS' })

/** Records that are not projected yet, oldest first. */
export const outbox = (organisationId: string, recordId: string): Key => ({
  pk: `ORG#${organisationId}#OUTBOX`,
  sk: recordId,
})

/** The lease of the worker that runs an organisation's projections. */
export const projectionLease = (organisationId: string): Key => ({
  pk: `ORG#${organisationId}`,
  sk: 'PROJECTION-LEASE',
})

export const isOutbox = ({ pk }: Key): boolean => pk.endsWith('#OUTBOX')

/** A record that no projection could process, for operators. */
export const quarantinedRecord = (outboxPk: string, recordId: string): Key => ({
  pk: `QUARANTINE#${outboxPk}`,
  sk: recordId,
})

/** The end of an organisation's audit chain: the newest entry's number, hash and time. */
export const auditHead = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'AUDIT-HEAD' })
/** Audit entries of an organisation by number, oldest first. */
export const auditEntry = (organisationId: string, seq: number): Key => ({
  pk: `ORG#${organisationId}#AUDIT`,
  sk: String(seq).padStart(12, '0'),
})
/** Index attributes of an audit entry: actor, action and resource. */
export const auditIndexKeys = (organisationId: string, { actor, action, resource }: Record<AuditFilter, string>) => ({
  gsi1pk: auditPartition(organisationId, 'actor', actor),
  gsi2pk: auditPartition(organisationId, 'action', action),
  gsi3pk: auditPartition(organisationId, 'resource', resource),
})
export type AuditFilter = 'actor' | 'action' | 'resource'
/** The index partition of one actor, action or resource. */
export const auditPartition = (organisationId: string, filter: AuditFilter, value: string): string =>
  `${organisationId}#AUDIT#${filter}#${value}`

/** The notifications of a user, newest last: one small item each. The state sorts after them. */
export const feed = (organisationId: string, userId: string, notificationId: string): Key => ({
  pk: `ORG#${organisationId}#FEED#${userId}`,
  sk: notificationId,
})
export const feedState = (organisationId: string, userId: string): Key => feed(organisationId, userId, '~STATE')
/** The content of a notification, shared by its recipients. */
export const notification = (organisationId: string, notificationId: string): Key => ({
  pk: `ORG#${organisationId}#NOTIFICATION`,
  sk: notificationId,
})
/** Recently notified event types of a cluster; expires. */
export const notificationCooldown = (organisationId: string, clusterId: string, type: string): Key => ({
  pk: `ORG#${organisationId}#NOTIFICATION-COOLDOWN#${clusterId}`,
  sk: type,
})

/** The timeline of a cluster, newest last; expires. */
export const timeline = (organisationId: string, clusterId: string, entryId: string): Key => ({
  pk: `ORG#${organisationId}#TIMELINE#${clusterId}`,
  sk: entryId,
})

/** The stored response of an idempotent request, by a hash of caller and key; expires. */
export const idempotencyRecord = (organisationId: string, hash: string): Key => ({
  pk: `ORG#${organisationId}#IDEMPOTENCY#${hash}`,
  sk: 'RESPONSE',
})

/** The number of local platform administrators. */
export const administrators = (): Key => ({ pk: 'PLATFORM', sk: 'ADMINISTRATORS' })

/** Users of an organisation, by id. */
export const user = (organisationId: string, userId: string): Key => ({
  pk: `ORG#${organisationId}#USER`,
  sk: userId,
})

/** A user's preferences in one partition: layout, saved filters and their number. */
export const preferences = (organisationId: string, userId: string): { pk: string } => ({
  pk: `ORG#${organisationId}#USER#${userId}#PREFERENCE`,
})
export const dashboardLayout = (organisationId: string, userId: string): Key => ({
  ...preferences(organisationId, userId),
  sk: 'LAYOUT',
})
export const filterCount = (organisationId: string, userId: string): Key => ({
  ...preferences(organisationId, userId),
  sk: 'FILTERS',
})
export const savedFilter = (organisationId: string, userId: string, filterId: string): Key => ({
  ...preferences(organisationId, userId),
  sk: filterId,
})

/** Offset index of an organisation's users. */
export const userOffsets = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'USER-OFFSETS' })

/** Credential of a username: the user, and the password hash of a local account. Unique on the platform. */
export const username = (name: string): Key => ({ pk: `USERNAME#${fold(name)}`, sk: 'CREDENTIAL' })

/** Failed sign-ins in one minute, by the hash of a username or by address; expires. */
export const failedSignIns = (subject: string, minute: number): Key => ({
  pk: `FAILED-SIGN-INS#${fold(subject)}`,
  sk: `M#${minute}`,
})

/** Written for failed sign-ins of unknown users, at the same cost as the outbox record of a known one; expires. */
export const dummyCredential = (id: string): Key => ({ pk: `DUMMY-CREDENTIAL#${id}`, sk: 'DUMMY-CREDENTIAL' })

/** One sign-in. Its refresh tokens are in the same partition. */
export const session = (sessionId: string): Key => ({ pk: `SESSION#${sessionId}`, sk: 'SESSION' })
export const refreshToken = (sessionId: string, tokenId: string): Key => ({
  pk: `SESSION#${sessionId}`,
  sk: `TOKEN#${tokenId}`,
})

/** The index partition of a user's sessions that were not ended individually. */
export const userSessions = (userId: string): string => `USER#${userId}#SESSIONS`

/** An API token by its public id. The user's record lists it. */
export const apiToken = (tokenId: string): Key => ({ pk: `API-TOKEN#${tokenId}`, sk: 'TOKEN' })

/** Sites of an organisation, newest last. */
export const site = (organisationId: string, siteId: string): Key => ({ pk: `ORG#${organisationId}#SITE`, sk: siteId })
export const siteName = (organisationId: string, name: string): Key => ({
  pk: `ORG#${organisationId}#SITE-NAME#${fold(name)}`,
  sk: 'NAME',
})
export const siteCount = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'SITE-COUNT' })

/** Clusters of an organisation, newest last. The record includes presence, so that a page takes one query. */
export const cluster = (organisationId: string, clusterId: string): Key => ({
  pk: `ORG#${organisationId}#CLUSTER`,
  sk: clusterId,
})
/** The organisation of a partition key. */
export const organisationOf = (pk: string): string => pk.split('#')[1] ?? ''

/** Offset index of clusters: reading a page never walks the pages before it. */
export const clusterOffsets = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'CLUSTER-OFFSETS' })
/** Clusters per status and type, for totals of filtered lists. */
export const clusterStatusCounts = (organisationId: string): Key => ({
  pk: `ORG#${organisationId}`,
  sk: 'CLUSTER-STATUS-COUNTS',
})
/** The reservation of a name, unique within an organisation. */
export const clusterName = (organisationId: string, name: string): Key => ({
  pk: `ORG#${organisationId}#CLUSTER-NAME#${fold(name)}`,
  sk: 'NAME',
})
/** The nodes of a cluster, as one list. */
export const nodes = (organisationId: string, clusterId: string): Key => ({
  pk: `ORG#${organisationId}#NODES`,
  sk: clusterId,
})

/** A removed cluster with ended jobs to purge. */
export const clusterPurge = (clusterId: string): Key => ({ pk: `PURGE#${clusterId}`, sk: 'CLUSTER' })

/** A removed user with preferences to purge, once its access tokens have expired. */
export const userPurge = (userId: string): Key => ({ pk: `PURGE#${userId}`, sk: 'USER' })

/** An enrollment token by its public id; expires. */
export const enrollment = (enrollmentId: string): Key => ({ pk: `ENROLLMENT#${enrollmentId}`, sk: 'ENROLLMENT' })

/** A relay: its key and its cluster. Written once; the cluster names its current relay. */
export const relay = (relayId: string): Key => ({ pk: `RELAY#${relayId}`, sk: 'RELAY' })
/** A used request token of a relay; expires. */
export const relayRequest = (relayId: string, tokenId: string): Key => ({
  pk: `RELAY#${relayId}#REQUEST#${tokenId}`,
  sk: 'REQUEST',
})

/** Webhooks of an organisation. The record includes the worker's lease, so that one read returns both. */
export const webhook = (organisationId: string, webhookId: string): Key => ({
  pk: `ORG#${organisationId}#WEBHOOK`,
  sk: webhookId,
})
export const isWebhook = ({ pk }: Key): boolean => pk.endsWith('#WEBHOOK')
export const webhookCount = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'WEBHOOK-COUNT' })
/** Deliveries of a webhook, oldest first; expires. */
export const delivery = (organisationId: string, webhookId: string, deliveryId: string): Key => ({
  pk: `ORG#${organisationId}#WEBHOOK#${webhookId}#DELIVERY`,
  sk: deliveryId,
})
/** Pending deliveries: first attempts, which are always due, then retries, the earliest first; expires. */
export const pendingDelivery = (
  organisationId: string,
  webhookId: string,
  { isFirst, atMs, deliveryId }: { isFirst: boolean; atMs: number; deliveryId: string },
): Key => ({
  pk: pendingDeliveriesOf(organisationId, webhookId),
  sk: `${isFirst ? 'FIRST' : 'RETRY'}#${dueSort(atMs)}#${deliveryId}`,
})
export const pendingDeliveriesOf = (organisationId: string, webhookId: string): string =>
  `ORG#${organisationId}#WEBHOOK#${webhookId}#PENDING`
/** The index partition of a webhook's deliveries. */
export const webhookDeliveries = (organisationId: string, webhookId: string): string =>
  `${organisationId}#${webhookId}#DELIVERIES`

/** Jobs that wait for a cluster's relay, oldest first. */
export const inbox = (clusterId: string, jobId: string): Key => ({ pk: `CLUSTER#${clusterId}#INBOX`, sk: jobId })

/** A job; its payload, result and output (by byte offset) are in the same partition. */
export const job = (organisationId: string, jobId: string): Key => ({
  pk: `ORG#${organisationId}#JOB#${jobId}`,
  sk: 'JOB',
})
export const payload = (organisationId: string, jobId: string): Key => ({
  ...job(organisationId, jobId),
  sk: 'PAYLOAD',
})
export const result = (organisationId: string, jobId: string): Key => ({ ...job(organisationId, jobId), sk: 'RESULT' })
export const output = (organisationId: string, jobId: string, offset: number): Key => ({
  pk: `ORG#${organisationId}#JOB#${jobId}`,
  sk: `OUTPUT#${String(offset).padStart(15, '0')}`,
})

/** Index attributes of a new job: cluster, organisation and status. */
export const jobIndexKeys = (job: { organisationId: string; clusterId: string; status: string }) => ({
  gsi1pk: clusterJobs(job.clusterId),
  gsi2pk: organisationJobs(job.organisationId),
  ...jobStatusIndexKey(job, job.status),
})
/** The index attribute that changes with a job's status. */
export const jobStatusIndexKey = ({ organisationId }: { organisationId: string }, status: string) => ({
  gsi3pk: organisationJobs(organisationId, status),
})

/** Index attributes of an operation: it has no cluster and is indexed by type. */
export const operationIndexKeys = (operation: { organisationId: string; type: string; status: string }) => ({
  gsi1pk: operationsOf(operation.organisationId, operation.type),
  gsi2pk: organisationJobs(operation.organisationId),
  ...jobStatusIndexKey(operation, operation.status),
})
/** The index partition of operations of one type. */
export const operationsOf = (organisationId: string, type: string): string => `${organisationId}#OPERATIONS#${type}`

/** The index partition of an organisation's jobs, optionally of one status. */
export const organisationJobs = (organisationId: string, status?: string): string =>
  `${organisationId}#JOBS${status === undefined ? '' : `#${status}`}`

/** The index partition of a cluster's jobs. */
export const clusterJobs = (clusterId: string): string => `CLUSTER#${clusterId}#JOBS`

/** A batch. Until all its jobs are stored, the partition also has its clusters and its jobs in chunks. */
export const batch = (organisationId: string, batchId: string): Key => ({
  pk: `ORG#${organisationId}#BATCH#${batchId}`,
  sk: 'BATCH',
})
export const batchClusters = (organisationId: string, batchId: string): Key => ({
  ...batch(organisationId, batchId),
  sk: 'CLUSTERS',
})
export const batchChunk = (organisationId: string, batchId: string, chunk: number): Key => ({
  ...batch(organisationId, batchId),
  sk: `CHUNK#${String(chunk).padStart(3, '0')}`,
})

/** The index partition of an organisation's batches. */
export const organisationBatches = (organisationId: string): string => `${organisationId}#BATCHES`

/** The removal guard: open batches, and the number of removed clusters. */
export const removalGuard = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'REMOVAL-GUARD' })

/** The number of jobs of an organisation, in total and per status. */
export const jobTotals = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'JOB-TOTALS' })

/** Clusters per status at the end of a time bucket in which a status changed. */
export const clusterHistory = (organisationId: string, slotMs: number): Key => ({
  pk: history(organisationId),
  sk: `CLUSTERS#${dueSort(slotMs)}`,
})
/** Jobs created and ended in a time bucket; expires. */
export const jobHistory = (organisationId: string, slotMs: number): Key => ({
  pk: history(organisationId),
  sk: `JOBS#${dueSort(slotMs)}`,
})
const history = (organisationId: string): string => `ORG#${organisationId}#HISTORY`
/** The start of the time bucket of a sort key of either kind. */
export const bucketStartOf = (sk: unknown): number => Number(String(sk).split('#')[1])

/** Installed modules and, separately, their health. They belong to the whole platform. */
export const modules = (): { pk: string } => ({ pk: 'MODULES' })
export const module = (moduleId: string): Key => ({ ...modules(), sk: `MODULE#${moduleId}` })
export const moduleHealth = (moduleId: string): Key => ({ ...modules(), sk: `HEALTH#${moduleId}` })
/** API paths and deployments of modules: one item with everything that a proxied request needs. */
export const moduleRoutes = (): Key => ({ pk: 'PLATFORM', sk: 'MODULE-ROUTES' })
/** Pending events of a module, oldest first; expires. */
export const moduleEvents = (moduleId: string): { pk: string } => ({ pk: `MODULE#${moduleId}#EVENTS` })
export const moduleEvent = (moduleId: string, eventId: string): Key => ({ ...moduleEvents(moduleId), sk: eventId })
/** The delivery lease of a module and its state; expires. */
export const moduleDelivery = (moduleId: string): Key => ({ pk: `MODULE#${moduleId}`, sk: 'DELIVERY' })

/** The catalog of the last scan: one item per repository, and the result of the scan. */
export const catalog = (): { pk: string } => ({ pk: 'CATALOG' })
export const catalogRepository = (reference: string): Key => ({ ...catalog(), sk: `REPOSITORY#${reference}` })
export const catalogScan = (): Key => ({ ...catalog(), sk: 'SCAN' })

/** Identity providers in one partition: at sign-in the organisation is unknown. */
export const identityProviders = (): { pk: string } => ({ pk: 'IDENTITY-PROVIDERS' })
export const identityProvider = (providerId: string): Key => ({ ...identityProviders(), sk: providerId })
export const identityProviderCount = (organisationId: string): Key => ({
  pk: `ORG#${organisationId}`,
  sk: 'IDENTITY-PROVIDER-COUNT',
})
/** An unused secret, by its name in Secrets Manager. It may not exist. */
export const orphanedSecret = (name: string): Key => ({ pk: `SECRET#${name}`, sk: 'ORPHANED-SECRET' })
/** The user of a provider's subject, by the subject's hash, because subjects may have any length. */
export const externalIdentity = (providerId: string, subjectHash: string): Key => ({
  pk: `IDENTITY#${providerId}#${subjectHash}`,
  sk: 'USER',
})
/** A sign-in redirected to a provider, by the hash of its state; expires. */
export const signInAttempt = (stateHash: string): Key => ({ pk: `SIGN-IN#${stateHash}`, sk: 'ATTEMPT' })
/** A completed sign-in, by the hash of the code that fetches its tokens; expires. */
export const signInCode = (codeHash: string): Key => ({ pk: `SIGN-IN#${codeHash}`, sk: 'CODE' })
/** A consent request redirected to a provider, by the hash of its state; expires. */
export const consentRequest = (stateHash: string): Key => ({ pk: `CONSENT#${stateHash}`, sk: 'REQUEST' })

/** The active and the previous release, and the job of a running update. */
export const updateState = (): Key => ({ pk: 'PLATFORM', sk: 'UPDATE' })
/** The result of the last update check. */
export const updateCheck = (): Key => ({ pk: 'PLATFORM', sk: 'UPDATE-CHECK' })
/** Unexpected errors of a platform version in one minute; expires. */
export const versionErrorCount = (version: string, minute: number): Key => ({
  pk: `VERSION-ERRORS#${version}`,
  sk: `M#${minute}`,
})

/** The number of partitions of the due index: spreads writes, and lets the sweep read all every minute. */
export const dueShards = 4

const shardOf = (id: string): number => (id.codePointAt(id.length - 1) ?? 0) % dueShards

export const duePartition = (shard: number): string => `DUE#${shard}`

/** Index attributes of an item that the sweep checks from `dueAtMs` on. */
export const due = (id: string, dueAtMs: number): { duepk: string; duesk: string } => ({
  duepk: duePartition(shardOf(id)),
  duesk: `${dueSort(dueAtMs)}#${id}`,
})

/** The due time of a sort key; 0 without one. */
export const dueTimeOf = (duesk: string | undefined): number => Number(duesk?.split('#')[0] ?? 0)

export const dueSort = (ms: number): string => String(Math.floor(ms)).padStart(15, '0')

/** Index attributes of a cluster's type and status. */
export const clusterIndexKeys = (organisationId: string, type: string, status: string) => ({
  gsi1pk: clusterPartition(organisationId, { status }),
  gsi2pk: clusterPartition(organisationId, { type }),
  gsi3pk: clusterPartition(organisationId, { type, status }),
})

/** The index partition of a filter. Short, because each cluster record contains three. */
export const clusterPartition = (organisationId: string, filter: { type?: string; status?: string }): string =>
  [organisationId, filter.type, filter.status].filter((part) => part !== undefined).join('#')
