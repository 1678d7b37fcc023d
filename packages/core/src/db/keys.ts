/**
 * The single-table design: the keys of all items, and their indexes. Most partition keys of tenant data include the
 * organisation, so that a lookup does not find items of other organisations. Indexes project only keys. Each index sort
 * key ends with the item's id, so that entries are unique. `ttl` (seconds) lets the store delete an item; the code also
 * checks expiry where it matters, because the store deletes late.
 *
 * - gsi1 (gsi1pk, id): clusters by status; jobs of a cluster; operations by type; batches; sessions; enrollment keys;
 *   relay updates; audit entries by actor; deliveries
 * - gsi2 (gsi2pk, id): clusters by type; jobs of an organisation; audit entries by action
 * - gsi3 (gsi3pk, id): clusters by type and status; ended jobs of an organisation by status, and its active ones without
 *   those of batches; unfinished batches; audit entries by resource
 * - due (duepk, duesk): items for the sweep, by due time
 */

export interface Key {
  pk: string
  sk: string
}

export type IndexName = 'gsi1' | 'gsi2' | 'gsi3' | 'due'

/**
 * Normalises text for case-insensitive comparison. Unicode's full conversion to upper case makes `ß` equal to `ss`. The
 * lower case of a sigma depends on its position in the word, so both forms become one letter.
 */
export const fold = (name: string): string =>
  name.normalize('NFC').toLowerCase().toUpperCase().toLowerCase().replaceAll('ς', 'σ').normalize('NFC')

/** Truncates the name, because a sign-in may contain a name of any length, and keys have at most 2,048 bytes. */
export const foldUsername = (name: string): string => fold(name.normalize('NFKC')).slice(0, 500)

/** Setup state, settings, the layout of the table, the hash of the initial admin token, and the number of API starts. */
export const platform = (): Key => ({ pk: 'PLATFORM', sk: 'STATE' })

export const writeCheck = (): Key => ({ pk: 'PLATFORM', sk: 'WRITE-CHECK' })

/** The start of the last sweep, the time since which sweeps have run without a gap, and the remaining full sweeps. */
export const sweepState = (): Key => ({ pk: 'PLATFORM', sk: 'SWEEP' })

/** The progress of the run that removes expired jobs. */
export const jobRetention = (): Key => ({ pk: 'PLATFORM', sk: 'JOB-RETENTION' })

/** The public keys of access tokens, or of tokens for modules. */
export const tokenKeys = (kind: 'access' | 'module'): Key => ({
  pk: 'PLATFORM',
  sk: kind === 'access' ? 'ACCESS-KEYS' : 'MODULE-TOKEN-KEYS',
})

/** Sorted by creation time. */
export const organisation = (organisationId: string): Key => ({ pk: 'ORGANISATIONS', sk: organisationId })
export const organisationName = (name: string): Key => ({ pk: `ORGANISATION-NAME#${fold(name)}`, sk: 'NAME' })
export const organisationOffsets = (): Key => ({ pk: 'PLATFORM', sk: 'ORGANISATION-OFFSETS' })

/**
 * Records that are not projected yet, oldest first. They have two partitions, because the store cannot split a
 * partition whose sort keys always increase.
 */
export const outbox = (organisationId: string, recordId: string): Key => ({
  pk: outboxPartition(organisationId, shardOf(recordId, outboxShardCount)),
  sk: recordId,
})
export const outboxPartitions = (organisationId: string): string[] =>
  Array.from({ length: outboxShardCount }, (_, shard) => outboxPartition(organisationId, shard))
const outboxShardCount = 2
const outboxPartition = (organisationId: string, shard: number): string => `ORG#${organisationId}#${shard}#OUTBOX`

/** Held by the worker that projects a backlog of an organisation. */
export const projectionLease = (organisationId: string): Key => ({
  pk: `ORG#${organisationId}`,
  sk: 'PROJECTION-LEASE',
})

/** Makes the sweep look for records whose message was lost. */
export const outboxCheck = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'OUTBOX-CHECK' })

export const isOutbox = ({ pk }: Key): boolean => pk.endsWith('#OUTBOX')

/** A record that a projection could not process, for inspection by operators. */
export const quarantinedRecord = (outboxPk: string, recordId: string): Key => ({
  pk: `QUARANTINE#${outboxPk}`,
  sk: recordId,
})

/** Oldest first; numbers start at 1. */
export const auditEntry = (organisationId: string, seq: number): Key => ({
  pk: `ORG#${organisationId}#AUDIT`,
  sk: String(seq).padStart(12, '0'),
})
export const auditIndexKeys = (organisationId: string, { actor, action, resource }: Record<AuditFilter, string>) => ({
  gsi1pk: auditPartition(organisationId, 'actor', actor),
  gsi2pk: auditPartition(organisationId, 'action', action),
  gsi3pk: auditPartition(organisationId, 'resource', resource),
})
export type AuditFilter = 'actor' | 'action' | 'resource'
export const auditPartition = (organisationId: string, filter: AuditFilter, value: string): string =>
  `${organisationId}#AUDIT#${filter}#${value}`

/** One small item per notification and recipient, oldest first. The prefix `~` sorts the state after these items. */
export const feed = (organisationId: string, userId: string, notificationId: string): Key => ({
  pk: `ORG#${organisationId}#FEED#${userId}`,
  sk: notificationId,
})
export const feedState = (organisationId: string, userId: string): Key => feed(organisationId, userId, '~STATE')
/** Stored once and shared by all recipients. */
export const notification = (organisationId: string, notificationId: string): Key => ({
  pk: `ORG#${organisationId}#NOTIFICATION`,
  sk: notificationId,
})
/** Recent notifications of one type about a cluster, and the event that waits for the end of the cooldown; expires. */
export const notificationCooldown = (organisationId: string, clusterId: string, type: string): Key => ({
  pk: `ORG#${organisationId}#NOTIFICATION-COOLDOWN#${clusterId}`,
  sk: type,
})
export const clusterOfCooldown = (pk: string): string => pk.split('#')[3] ?? ''
export const isNotificationCooldown = ({ pk }: Key): boolean => pk.includes('#NOTIFICATION-COOLDOWN#')

/** The last summary of the status changes that a sweep found, or of those whose notifications a cooldown refused. */
export const sweepSummary = (organisationId: string, kind: 'CHANGES' | 'REFUSALS'): Key => ({
  pk: `ORG#${organisationId}`,
  sk: `SWEEP-SUMMARY#${kind}`,
})

/** Events of a cluster and audit entries about it, oldest first. They expire. */
export const timeline = (organisationId: string, clusterId: string, entryId: string): Key => ({
  pk: `ORG#${organisationId}#TIMELINE#${clusterId}`,
  sk: entryId,
})

/** The stored response of an idempotent request; `hash` covers the caller and the idempotency key. Expires. */
export const idempotencyRecord = (organisationId: string, hash: string): Key => ({
  pk: `ORG#${organisationId}#IDEMPOTENCY#${hash}`,
  sk: 'RESPONSE',
})

/** The number of the organisation's administrators with a local account. */
export const administrators = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'ADMINISTRATORS' })

export const user = (organisationId: string, userId: string): Key => ({
  pk: `ORG#${organisationId}#USER`,
  sk: userId,
})

/** One partition holds the layout, the saved filters and their number. */
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

export const userOffsets = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'USER-OFFSETS' })

/** The user, and the password hash of a local account. Usernames are unique on the platform. */
export const username = (name: string): Key => ({ pk: `USERNAME#${foldUsername(name)}`, sk: 'CREDENTIAL' })

/** The calls of a subject in one period, for a limit across all processes; expires. */
export const callCount = (subject: string, periodSeconds: number, period: number): Key => ({
  pk: `CALL-COUNT#${subject}`,
  sk: `${periodSeconds}S#${period}`,
})

/** A browser with its users, found by the hash of its cookie; expires. */
export const device = (hash: string): Key => ({ pk: `DEVICE#${hash}`, sk: 'DEVICE' })

/** Written for failed sign-ins of unknown users, at the same cost as the outbox record for a known user; expires. */
export const dummyCredential = (id: string): Key => ({ pk: `DUMMY-CREDENTIAL#${id}`, sk: 'DUMMY-CREDENTIAL' })

/** Shares its partition with the refresh tokens of the session. */
export const session = (sessionId: string): Key => ({ pk: `SESSION#${sessionId}`, sk: 'SESSION' })
export const refreshToken = (sessionId: string, tokenId: string): Key => ({
  pk: `SESSION#${sessionId}`,
  sk: `TOKEN#${tokenId}`,
})

/** The index partition of the sessions of a user, without those that were ended individually. */
export const userSessions = (userId: string): string => `USER#${userId}#SESSIONS`

export const apiToken = (tokenId: string): Key => ({ pk: `API-TOKEN#${tokenId}`, sk: 'TOKEN' })

/** Oldest first. */
export const site = (organisationId: string, siteId: string): Key => ({ pk: `ORG#${organisationId}#SITE`, sk: siteId })
export const siteName = (organisationId: string, name: string): Key => ({
  pk: `ORG#${organisationId}#SITE-NAME#${fold(name)}`,
  sk: 'NAME',
})
export const siteCount = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'SITE-COUNT' })

/** Oldest first. The record includes the relay's last heartbeat. */
export const cluster = (organisationId: string, clusterId: string): Key => ({
  pk: `ORG#${organisationId}#CLUSTER`,
  sk: clusterId,
})
export const isCluster = ({ pk }: Key): boolean => pk.endsWith('#CLUSTER')
export const organisationOf = (pk: string): string => pk.split('#')[1] ?? ''

/** An offset index, which lets a list read any page without the preceding ones. */
export const clusterOffsets = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'CLUSTER-OFFSETS' })
export const clusterStatusCounts = (organisationId: string): Key => ({
  pk: `ORG#${organisationId}`,
  sk: 'CLUSTER-STATUS-COUNTS',
})
/** Reserves a name, which is unique within an organisation. One partition holds all names, for searches. */
export const clusterName = (organisationId: string, name: string): Key => ({
  pk: `ORG#${organisationId}#CLUSTER-NAME`,
  sk: fold(name),
})
/** One partition holds the labels of all clusters, for selectors. */
export const clusterLabels = (organisationId: string, clusterId: string): Key => ({
  pk: `ORG#${organisationId}#CLUSTER-LABELS`,
  sk: clusterId,
})
export const nodes = (organisationId: string, clusterId: string): Key => ({
  pk: `ORG#${organisationId}#NODES`,
  sk: clusterId,
})

/** Marks a removed cluster whose jobs must be purged. */
export const clusterPurge = (clusterId: string): Key => ({ pk: `PURGE#${clusterId}`, sk: 'CLUSTER' })

/** Marks a removed user whose preferences must be purged once its access tokens have expired. */
export const userPurge = (userId: string): Key => ({ pk: `PURGE#${userId}`, sk: 'USER' })

export const enrollment = (enrollmentId: string): Key => ({ pk: `ENROLLMENT#${enrollmentId}`, sk: 'ENROLLMENT' })

/** Found by the id that the key contains. Shares its partition with its uses, which expire. */
export const enrollmentKey = (keyId: string): Key => ({ pk: `ENROLLMENT-KEY#${keyId}`, sk: 'KEY' })
export const enrollmentKeyUse = (keyId: string, thumbprint: string): Key => ({
  pk: `ENROLLMENT-KEY#${keyId}`,
  sk: `USE#${thumbprint}`,
})
export const enrollmentKeysOf = (organisationId: string): string => `${organisationId}#ENROLLMENT-KEYS`
export const enrollmentKeyCount = (organisationId: string): Key => ({
  pk: `ORG#${organisationId}`,
  sk: 'ENROLLMENT-KEY-COUNT',
})

export const relayUpdate = (organisationId: string, updateId: string): Key => ({
  pk: `ORG#${organisationId}#RELAY-UPDATE`,
  sk: updateId,
})
export const isRelayUpdate = ({ pk }: Key): boolean => pk.endsWith('#RELAY-UPDATE')
export const relayUpdatesOf = (organisationId: string): string => `${organisationId}#RELAY-UPDATES`
export const relayUpdateMembers = (organisationId: string, updateId: string, chunk: number): Key => ({
  pk: `ORG#${organisationId}#RELAY-UPDATE#${updateId}`,
  sk: `MEMBERS#${chunk}`,
})
export const runningRelayUpdate = (organisationId: string): Key => ({
  pk: `ORG#${organisationId}`,
  sk: 'RUNNING-RELAY-UPDATE',
})

/** The relay's public key and cluster. Never changed: the cluster's record names the current relay. */
export const relay = (relayId: string): Key => ({ pk: `RELAY#${relayId}`, sk: 'RELAY' })
/** The record includes the worker's lease, so that one read returns both. */
export const webhook = (organisationId: string, webhookId: string): Key => ({
  pk: `ORG#${organisationId}#WEBHOOK`,
  sk: webhookId,
})
export const isWebhook = ({ pk }: Key): boolean => pk.endsWith('#WEBHOOK')
export const webhookCount = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'WEBHOOK-COUNT' })
/** Oldest first; expires. */
export const delivery = (organisationId: string, webhookId: string, deliveryId: string): Key => ({
  pk: `ORG#${organisationId}#WEBHOOK#${webhookId}#DELIVERY`,
  sk: deliveryId,
})
/** First attempts, which are always due, sort before retries; both are in order of due time. Expires. */
export const pendingDelivery = (
  organisationId: string,
  webhookId: string,
  { isFirst, atMs, deliveryId }: { isFirst: boolean; atMs: number; deliveryId: string },
): Key => ({
  pk: pendingDeliveriesOf(organisationId, webhookId),
  sk: `${isFirst ? 'FIRST' : 'RETRY'}#${dueSortKey(atMs)}#${deliveryId}`,
})
export const pendingDeliveriesOf = (organisationId: string, webhookId: string): string =>
  `ORG#${organisationId}#WEBHOOK#${webhookId}#PENDING`
export const webhookDeliveries = (organisationId: string, webhookId: string): string =>
  `${organisationId}#${webhookId}#DELIVERIES`

/** Waiting jobs that the cluster's record does not list, oldest first. */
export const inbox = (clusterId: string, jobId: string): Key => ({ pk: `CLUSTER#${clusterId}#INBOX`, sk: jobId })

/** The ULIDs of a batch and its jobs differ only in the last two characters, so that they share a partition. */
const batchPartition = (organisationId: string, id: string): string =>
  `ORG#${organisationId}#BATCH#${id.slice(-26, -2)}`
const jobSortKey = (jobId: string): string => `JOB#${jobId.slice(-2)}`
/** A job is in the partition of its batch. A job without a batch and an operation have a partition of their own. */
export const job = (organisationId: string, jobId: string): Key => ({
  pk: batchPartition(organisationId, jobId),
  sk: jobSortKey(jobId),
})
export const isJob = ({ sk }: Pick<Key, 'sk'>): boolean => sk.startsWith('JOB#')
export const jobsOfBatch = (organisationId: string, batchId: string): { pk: string; from: string; to: string } => ({
  pk: batchPartition(organisationId, batchId),
  from: jobSortKey(''),
  to: jobSortKey('~'),
})
/** The partition of the payload, the result and the output of a job. */
export const jobDetails = (organisationId: string, jobId: string): { pk: string } => ({
  pk: `ORG#${organisationId}#JOB#${jobId}`,
})
export const payload = (organisationId: string, jobId: string): Key => ({
  ...jobDetails(organisationId, jobId),
  sk: 'PAYLOAD',
})
export const result = (organisationId: string, jobId: string): Key => ({
  ...jobDetails(organisationId, jobId),
  sk: 'RESULT',
})
export const output = (organisationId: string, jobId: string, offset: number): Key => ({
  ...jobDetails(organisationId, jobId),
  sk: `OUTPUT#${String(offset).padStart(15, '0')}`,
})

/** Active jobs of batches have no status key, which saves two writes for each job. Readers find them by their batches. */
export const jobIndexKeys = (job: {
  organisationId: string
  clusterId: string
  status: string
  batchId?: string | undefined
}) => ({
  gsi1pk: clusterJobs(job.clusterId),
  gsi2pk: organisationJobs(job.organisationId),
  ...(isActive(job.status) && job.batchId !== undefined ? {} : jobStatusIndexKey(job, job.status)),
})
/** The only index attribute that changes with a job's status. */
export const jobStatusIndexKey = ({ organisationId }: { organisationId: string }, status: string) => ({
  gsi3pk: organisationJobs(organisationId, isActive(status) ? 'Active' : status),
})
/** Queued and running jobs share a partition, so that a claim does not change the index. */
export const isActive = (status: string | undefined): status is 'Queued' | 'Running' =>
  status === 'Queued' || status === 'Running'
export const activeJobsOf = (organisationId: string): string => organisationJobs(organisationId, 'Active')
export const unfinishedBatchesOf = (organisationId: string): string => `${organisationId}#BATCHES#Unfinished`

/** An operation has no cluster, so gsi1 lists it by type. */
export const operationIndexKeys = (operation: { organisationId: string; type: string; status: string }) => ({
  gsi1pk: operationsOf(operation.organisationId, operation.type),
  gsi2pk: organisationJobs(operation.organisationId),
  ...jobStatusIndexKey(operation, operation.status),
})
export const operationsOf = (organisationId: string, type: string): string => `${organisationId}#OPERATIONS#${type}`

export const organisationJobs = (organisationId: string, status?: string): string =>
  `${organisationId}#JOBS${status === undefined ? '' : `#${status}`}`

export const clusterJobs = (clusterId: string): string => `CLUSTER#${clusterId}#JOBS`

/** Until all jobs are stored, the partition also holds the batch's clusters and its jobs in chunks. */
export const batch = (organisationId: string, batchId: string): Key => ({
  pk: batchPartition(organisationId, batchId),
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

export const organisationBatches = (organisationId: string): string => `${organisationId}#BATCHES`

/** Open batches, and the number of removed clusters. */
export const removalGuard = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'REMOVAL-GUARD' })

/** Removed clusters whose jobs are not yet purged. */
export const removedClusters = (organisationId: string): Key => ({
  pk: `ORG#${organisationId}`,
  sk: 'REMOVED-CLUSTERS',
})

/** A share of the number of queued and running jobs. */
export const activeJobs = (organisationId: string, shard: number): Key => ({
  pk: `ORG#${organisationId}`,
  sk: `ACTIVE-JOBS#${shard}`,
})

/**
 * Numbers of jobs, the job history of the newest time bucket, and the head of the audit trail. One item, so that a
 * projection updates all of them with one write.
 */
export const organisationCounts = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'COUNTS' })

/** Numbers of clusters per status after the last status change of a time bucket. */
export const clusterHistory = (organisationId: string, bucketStartMs: number): Key => ({
  pk: historyPartition(organisationId),
  sk: `CLUSTERS#${dueSortKey(bucketStartMs)}`,
})
/** Numbers of jobs created and finished in an earlier time bucket; expires. */
export const jobHistory = (organisationId: string, bucketStartMs: number): Key => ({
  pk: historyPartition(organisationId),
  sk: `JOBS#${dueSortKey(bucketStartMs)}`,
})
const historyPartition = (organisationId: string): string => `ORG#${organisationId}#HISTORY`
export const bucketStartMsOf = (sk: unknown): number => Number(String(sk).split('#')[1])

/** Modules belong to the whole platform. Their health is stored separately, because it changes often. */
export const modules = (): { pk: string } => ({ pk: 'MODULES' })
export const module = (moduleId: string): Key => ({ ...modules(), sk: `MODULE#${moduleId}` })
export const moduleHealth = (moduleId: string): Key => ({ ...modules(), sk: `HEALTH#${moduleId}` })
/** The API paths and deployments of all modules, in one item that the API proxy reads. */
export const moduleRoutes = (): Key => ({ pk: 'PLATFORM', sk: 'MODULE-ROUTES' })
/** The modules that may receive events of an organisation, in one item that is read with the events. */
export const organisationModules = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'MODULES' })
/** Pending events of a module, oldest first; expires. */
export const moduleEvents = (moduleId: string): { pk: string } => ({ pk: `MODULE#${moduleId}#EVENTS` })
export const moduleEvent = (moduleId: string, eventId: string): Key => ({ ...moduleEvents(moduleId), sk: eventId })
/** The lease and state of a module's event delivery; expires. */
export const moduleDelivery = (moduleId: string): Key => ({ pk: `MODULE#${moduleId}`, sk: 'DELIVERY' })

/** One item per repository of the last scan, and the scan's result. */
export const catalog = (): { pk: string } => ({ pk: 'CATALOG' })
export const catalogRepository = (reference: string): Key => ({ ...catalog(), sk: `REPOSITORY#${reference}` })
export const catalogScan = (): Key => ({ ...catalog(), sk: 'SCAN' })

/** One partition for all organisations, because a sign-in does not name its organisation. */
export const identityProviders = (): { pk: string } => ({ pk: 'IDENTITY-PROVIDERS' })
export const identityProvider = (providerId: string): Key => ({ ...identityProviders(), sk: providerId })
export const identityProviderCount = (organisationId: string): Key => ({
  pk: `ORG#${organisationId}`,
  sk: 'IDENTITY-PROVIDER-COUNT',
})
/** Marks a secret that may exist in Secrets Manager and must be deleted. */
export const orphanedSecret = (name: string): Key => ({ pk: `SECRET#${name}`, sk: 'ORPHANED-SECRET' })
/** Contains the subject's hash, because a subject may have any length. */
export const externalIdentity = (providerId: string, subjectHash: string): Key => ({
  pk: `IDENTITY#${providerId}#${subjectHash}`,
  sk: 'USER',
})
/** Keyed by the hash of the `state` parameter; expires. */
export const signInAttempt = (stateHash: string): Key => ({ pk: `SIGN-IN#${stateHash}`, sk: 'ATTEMPT' })
/** Keyed by the hash of the code that is exchanged for the tokens; expires. */
export const signInCode = (codeHash: string): Key => ({ pk: `SIGN-IN#${codeHash}`, sk: 'CODE' })
/** Keyed by the hash of the `state` parameter; expires. */
export const consentRequest = (stateHash: string): Key => ({ pk: `CONSENT#${stateHash}`, sk: 'REQUEST' })

/** The active and the previous release, and the job of a running update. */
export const updateState = (): Key => ({ pk: 'PLATFORM', sk: 'UPDATE' })
export const updateCheck = (): Key => ({ pk: 'PLATFORM', sk: 'UPDATE-CHECK' })
/** Unexpected errors of a platform version in one minute; expires. */
export const versionErrorCount = (version: string, minute: number): Key => ({
  pk: `VERSION-ERRORS#${version}`,
  sk: `M#${minute}`,
})

/** Several partitions spread the writes of the due index, and the sweep can still read all of them every minute. */
export const dueShardCount = 4

const shardOf = (id: string, shardCount: number): number => (id.codePointAt(id.length - 1) ?? 0) % shardCount

export const duePartition = (shard: number): string => `DUE#${shard}`

export const dueIndexKeys = (id: string, dueAtMs: number): { duepk: string; duesk: string } => ({
  duepk: duePartition(shardOf(id, dueShardCount)),
  duesk: `${dueSortKey(dueAtMs)}#${id}`,
})

/** Returns the due time in milliseconds, or 0 if the item has none. */
export const dueMsOf = (duesk: string | undefined): number => Number(duesk?.split('#')[0] ?? 0)

export const dueSortKey = (ms: number): string => String(Math.floor(ms)).padStart(15, '0')

export const clusterIndexKeys = (organisationId: string, type: string, status: string) => ({
  gsi1pk: clusterPartition(organisationId, { status }),
  gsi2pk: clusterPartition(organisationId, { type }),
  gsi3pk: clusterPartition(organisationId, { type, status }),
})

/** Kept short, because each cluster record contains three of these values. */
export const clusterPartition = (organisationId: string, filter: { type?: string; status?: string }): string =>
  [organisationId, filter.type, filter.status].filter((part) => part !== undefined).join('#')
