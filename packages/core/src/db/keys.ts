/**
 * The whole single-table design on one page: entity → pk, sk, and which reads need it.
 * Tenant data carries its organisation in the partition key, so that a foreign id is "not found" by construction.
 *
 * Indexes project keys only. Every index sort key is or ends with the item's own id, so that no two entries are alike.
 *   gsi1  clusters of an organisation by status; jobs of a cluster; operations by type; batches; sessions; audit by actor;
 *         deliveries                                                                 gsi1pk, id
 *   gsi2  clusters of an organisation by type; jobs of an organisation; audit by action  gsi2pk, id
 *   gsi3  clusters of an organisation by type and status; jobs of one by status; audit by resource  gsi3pk, id
 *   due   whatever the sweep must look at, by due time                                 duepk, duesk
 *
 * `ttl` (seconds) lets the store forget an item; code compares expiry itself, because the store forgets late.
 */

/** A primary key. */
export interface Key {
  pk: string
  sk: string
}

/** The indexes of the table. */
export type IndexName = 'gsi1' | 'gsi2' | 'gsi3' | 'due'

/** Text as it is compared where case does not count. */
export const fold = (name: string): string => name.normalize('NFC').toLowerCase()

/** Setup state: whether it is complete, the hash of the initial admin token, how often the API started. */
export const platform = (): Key => ({ pk: 'PLATFORM', sk: 'STATE' })

/** Public keys that verify access tokens. Read once per process and again for an unknown key. */
export const accessKeys = (): Key => ({ pk: 'PLATFORM', sk: 'ACCESS-KEYS' })

/** Organisations, newest last by id. */
export const organisation = (organisationId: string): Key => ({ pk: 'ORGANISATIONS', sk: organisationId })
export const organisationName = (name: string): Key => ({ pk: `ORGANISATION-NAME#${fold(name)}`, sk: 'NAME' })
/** Where every bucket of organisations begins. */
export const organisationOffsets = (): Key => ({ pk: 'PLATFORM', sk: 'ORGANISATION-RANKS' })

/** What has happened in an organisation and is not in the books yet, oldest first. */
export const outbox = (organisationId: string, recordId: string): Key => ({
  pk: `ORG#${organisationId}#OUTBOX`,
  sk: recordId,
})

/** Who keeps an organisation's books just now. */
export const projectionLease = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'BOOKS-TURN' })

export const isOutbox = ({ pk }: Key): boolean => pk.endsWith('#OUTBOX')

/** A record that nobody can read, for people to look at. */
export const quarantinedRecord = (outboxPk: string, recordId: string): Key => ({
  pk: `UNREADABLE#${outboxPk}`,
  sk: recordId,
})

/** Where the audit chain of an organisation ends: the newest entry's number, hash and time. */
export const auditHead = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'AUDIT-HEAD' })
/** The audit entries of an organisation by their numbers, oldest first. */
export const auditEntry = (organisationId: string, seq: number): Key => ({
  pk: `ORG#${organisationId}#AUDIT`,
  sk: String(seq).padStart(12, '0'),
})
/** Index attributes that file an audit entry under who, what and to what. */
export const auditIndexKeys = (organisationId: string, { actor, action, resource }: Record<AuditFilter, string>) => ({
  gsi1pk: auditPartition(organisationId, 'actor', actor),
  gsi2pk: auditPartition(organisationId, 'action', action),
  gsi3pk: auditPartition(organisationId, 'resource', resource),
})
export type AuditFilter = 'actor' | 'action' | 'resource'
/** The index partition that holds the audit entries of one actor, action or resource. */
export const auditPartition = (organisationId: string, filter: AuditFilter, value: string): string =>
  `${organisationId}#AUDIT#${filter}#${value}`

/** The notifications of a user, newest last: one small item each. The state sorts behind them all. */
export const feed = (organisationId: string, userId: string, notificationId: string): Key => ({
  pk: `ORG#${organisationId}#FEED#${userId}`,
  sk: notificationId,
})
export const feedState = (organisationId: string, userId: string): Key => feed(organisationId, userId, '~STATE')
/** What a notification says, once for all who get it. */
export const notification = (organisationId: string, notificationId: string): Key => ({
  pk: `ORG#${organisationId}#NOTIFICATION`,
  sk: notificationId,
})
/** Which events of a cluster were notified lately; expires. */
export const notificationCooldown = (organisationId: string, clusterId: string, type: string): Key => ({
  pk: `ORG#${organisationId}#NOTIFIED#${clusterId}`,
  sk: type,
})

/** What happened to a cluster, newest last; expires. */
export const timeline = (organisationId: string, clusterId: string, entryId: string): Key => ({
  pk: `ORG#${organisationId}#TIMELINE#${clusterId}`,
  sk: entryId,
})

/** The answer to a request that may be repeated, by a hash of caller and key; expires. */
export const idempotencyRecord = (organisationId: string, hash: string): Key => ({
  pk: `ORG#${organisationId}#KEPT#${hash}`,
  sk: 'ANSWER',
})

/** How many local platform administrators there are: the last one cannot go. */
export const administrators = (): Key => ({ pk: 'PLATFORM', sk: 'ADMINISTRATORS' })

/** Users of an organisation, by id. */
export const user = (organisationId: string, userId: string): Key => ({
  pk: `ORG#${organisationId}#USER`,
  sk: userId,
})

/** What a user set for itself, in one partition that goes with the user: layout, saved filters and how many there are. */
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

/** Where every bucket of an organisation's users begins. */
export const userOffsets = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'USER-RANKS' })

/** Sign-in by name: where the user is, and the password hash where it has one here. Names are unique on the platform. */
export const username = (name: string): Key => ({ pk: `USERNAME#${fold(name)}`, sk: 'CREDENTIAL' })

/** Failed sign-ins in one minute, by the hash of a user name or by address; expires. */
export const failedSignIns = (who: string, minute: number): Key => ({ pk: `FAILED#${fold(who)}`, sk: `M#${minute}` })

/** What a failure leaves under a name that nobody has, where another one is put on record; expires. */
export const dummyCredential = (id: string): Key => ({ pk: `DECOY#${id}`, sk: 'DECOY' })

/** One sign-in. Its refresh tokens stand beside it: one family (D4). */
export const session = (sessionId: string): Key => ({ pk: `SESSION#${sessionId}`, sk: 'SESSION' })
export const refreshToken = (sessionId: string, tokenId: string): Key => ({
  pk: `SESSION#${sessionId}`,
  sk: `TOKEN#${tokenId}`,
})

/** The index partition that holds the sessions of a user which have not been ended one by one. */
export const userSessions = (userId: string): string => `USER#${userId}#SESSIONS`

/** An API token by its public id. Its user's row names it. */
export const apiToken = (tokenId: string): Key => ({ pk: `API-TOKEN#${tokenId}`, sk: 'TOKEN' })

/** Sites of an organisation; newest last by id. */
export const site = (organisationId: string, siteId: string): Key => ({ pk: `ORG#${organisationId}#SITE`, sk: siteId })
export const siteName = (organisationId: string, name: string): Key => ({
  pk: `ORG#${organisationId}#SITE-NAME#${fold(name)}`,
  sk: 'NAME',
})
/** How many sites an organisation has. */
export const siteCount = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'SITE-COUNT' })

/** Clusters of an organisation; newest last by id. The row holds presence, so that one page is one query. */
export const cluster = (organisationId: string, clusterId: string): Key => ({
  pk: `ORG#${organisationId}#CLUSTER`,
  sk: clusterId,
})
/** The organisation that a partition of its things belongs to. */
export const organisationOf = (pk: string): string => pk.split('#')[1] ?? ''

/** Where every bucket of clusters begins: reading a page never walks the pages before it. */
export const clusterOffsets = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'CLUSTER-RANKS' })
/** Clusters per status and type, for totals of filtered lists. */
export const clusterStatusCounts = (organisationId: string): Key => ({
  pk: `ORG#${organisationId}`,
  sk: 'CLUSTER-TALLY',
})
/** Keeps names unique within an organisation. */
export const clusterName = (organisationId: string, name: string): Key => ({
  pk: `ORG#${organisationId}#CLUSTER-NAME#${fold(name)}`,
  sk: 'NAME',
})
/** The nodes of a cluster, as one list. */
export const nodes = (organisationId: string, clusterId: string): Key => ({
  pk: `ORG#${organisationId}#NODES`,
  sk: clusterId,
})

/** Says that a removed cluster has ended jobs to be cleared away. */
export const clusterPurge = (clusterId: string): Key => ({ pk: `REMOVED#${clusterId}`, sk: 'CLUSTER' })

/** Says that a removed user has preferences to be cleared away, once its access tokens have expired. */
export const userPurge = (userId: string): Key => ({ pk: `REMOVED#${userId}`, sk: 'USER' })

/** An enrollment token by its public id; expires. */
export const enrollment = (enrollmentId: string): Key => ({ pk: `ENROLLMENT#${enrollmentId}`, sk: 'ENROLLMENT' })

/** A relay by id: its key and its cluster. Written once; whether it is still the cluster's relay stands in the cluster. */
export const relay = (relayId: string): Key => ({ pk: `RELAY#${relayId}`, sk: 'RELAY' })
/** A request token that a relay has used; expires. */
export const relayRequest = (relayId: string, tokenId: string): Key => ({
  pk: `RELAY#${relayId}#REQUEST#${tokenId}`,
  sk: 'REQUEST',
})

/** Webhooks of an organisation. The row holds the worker's lease, so that one read tells all of it. */
export const webhook = (organisationId: string, webhookId: string): Key => ({
  pk: `ORG#${organisationId}#WEBHOOK`,
  sk: webhookId,
})
export const isWebhook = ({ pk }: Key): boolean => pk.endsWith('#WEBHOOK')
/** How many webhooks an organisation has. */
export const webhookCount = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'WEBHOOK-COUNT' })
/** What a webhook is told, oldest first; expires. */
export const delivery = (organisationId: string, webhookId: string, deliveryId: string): Key => ({
  pk: `ORG#${organisationId}#WEBHOOK#${webhookId}#DELIVERY`,
  sk: deliveryId,
})
/** Deliveries that wait: for their first attempt, which is always due, then for another one, the earliest first; expires. */
export const pendingDelivery = (
  organisationId: string,
  webhookId: string,
  { isFirst, atMs, deliveryId }: { isFirst: boolean; atMs: number; deliveryId: string },
): Key => ({
  pk: pendingDeliveriesOf(organisationId, webhookId),
  sk: `${isFirst ? 'FIRST' : 'RETRY'}#${dueSort(atMs)}#${deliveryId}`,
})
export const pendingDeliveriesOf = (organisationId: string, webhookId: string): string =>
  `ORG#${organisationId}#WEBHOOK#${webhookId}#WAITING`
/** The index partition that holds the deliveries of a webhook. */
export const webhookDeliveries = (organisationId: string, webhookId: string): string =>
  `${organisationId}#${webhookId}#DELIVERIES`

/** Jobs that wait for a cluster's relay, oldest first. */
export const inbox = (clusterId: string, jobId: string): Key => ({ pk: `CLUSTER#${clusterId}#INBOX`, sk: jobId })

/** A job; beside it its payload, its result and its output by byte offset. */
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

/** Index attributes that file a new job: under its cluster, its organisation, and its status there. */
export const jobIndexKeys = (job: { organisationId: string; clusterId: string; status: string }) => ({
  gsi1pk: clusterJobs(job.clusterId),
  gsi2pk: organisationJobs(job.organisationId),
  ...jobStatusIndexKey(job, job.status),
})
/** The index attribute that changes with a job's status. */
export const jobStatusIndexKey = ({ organisationId }: { organisationId: string }, status: string) => ({
  gsi3pk: organisationJobs(organisationId, status),
})

/** Index attributes that file a job of the platform itself: it has no cluster, and is found by its type instead. */
export const operationIndexKeys = (operation: { organisationId: string; type: string; status: string }) => ({
  gsi1pk: operationsOf(operation.organisationId, operation.type),
  gsi2pk: organisationJobs(operation.organisationId),
  ...jobStatusIndexKey(operation, operation.status),
})
/** The index partition that holds the jobs of one type that the platform does on itself. */
export const operationsOf = (organisationId: string, type: string): string => `${organisationId}#OPERATIONS#${type}`

/** The index partition that holds the jobs of an organisation, or those of one status. */
export const organisationJobs = (organisationId: string, status?: string): string =>
  `${organisationId}#JOBS${status === undefined ? '' : `#${status}`}`

/** The index partition that holds the jobs of a cluster. */
export const clusterJobs = (clusterId: string): string => `CLUSTER#${clusterId}#JOBS`

/** A batch. Beside it, until each of its jobs stands in the table, which clusters it names, and its jobs in chunks. */
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

/** The index partition that holds the batches of an organisation. */
export const organisationBatches = (organisationId: string): string => `${organisationId}#BATCHES`

/** What accepting a batch and removing a cluster agree on: which batches are open, how many clusters have gone (D30). */
export const removalGuard = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'OPEN-BATCHES' })

/** How many jobs an organisation has, and how many of each status. */
export const jobTotals = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'JOB-TOTALS' })

/** How many clusters of each status an organisation had at the end of a slot of time in which that changed. */
export const clusterHistory = (organisationId: string, slotMs: number): Key => ({
  pk: history(organisationId),
  sk: `CLUSTERS#${dueSort(slotMs)}`,
})
/** How many jobs an organisation was given in a slot of time, and how many ended there; expires. */
export const jobHistory = (organisationId: string, slotMs: number): Key => ({
  pk: history(organisationId),
  sk: `JOBS#${dueSort(slotMs)}`,
})
const history = (organisationId: string): string => `ORG#${organisationId}#HISTORY`
/** When the slot of a sort key of either kind begins. */
export const bucketStartOf = (sk: unknown): number => Number(String(sk).split('#')[1])

/** Modules: each installed one, and its health beside it, which changes by itself. They belong to the platform as a whole. */
export const modules = (): { pk: string } => ({ pk: 'MODULES' })
export const module = (moduleId: string): Key => ({ ...modules(), sk: `MODULE#${moduleId}` })
export const moduleHealth = (moduleId: string): Key => ({ ...modules(), sk: `HEALTH#${moduleId}` })
/** Which API paths belong to modules, and where those run: all that a request to one of them needs, in one item. */
export const moduleRoutes = (): Key => ({ pk: 'PLATFORM', sk: 'MODULE-ROUTES' })
/** Events that wait for a module, oldest first; expires. */
export const moduleEvents = (moduleId: string): { pk: string } => ({ pk: `MODULE#${moduleId}#EVENTS` })
export const moduleEvent = (moduleId: string, eventId: string): Key => ({ ...moduleEvents(moduleId), sk: eventId })
/** Who hands a module its events just now, and how that goes; expires. */
export const moduleDelivery = (moduleId: string): Key => ({ pk: `MODULE#${moduleId}`, sk: 'DELIVERY' })

/** What the sources of modules hold, as the last scan found it: one item for each repository, and how the scan went. */
export const catalog = (): { pk: string } => ({ pk: 'CATALOG' })
export const catalogRepository = (reference: string): Key => ({ ...catalog(), sk: `REPOSITORY#${reference}` })
export const catalogScan = (): Key => ({ ...catalog(), sk: 'SCAN' })

/** Identity providers, all in one partition: sign-in knows no organisation yet. */
export const identityProviders = (): { pk: string } => ({ pk: 'IDENTITY-PROVIDERS' })
export const identityProvider = (providerId: string): Key => ({ ...identityProviders(), sk: providerId })
/** How many identity providers an organisation has. */
export const identityProviderCount = (organisationId: string): Key => ({
  pk: `ORG#${organisationId}`,
  sk: 'IDENTITY-PROVIDER-COUNT',
})
/** Says that a secret, by its name in Secrets Manager, is of no use any more, or may never come to be. */
export const orphanedSecret = (name: string): Key => ({ pk: `SECRET#${name}`, sk: 'UNUSED-SECRET' })
/** Whom a provider's subject is here; the hash of the subject, which is as long as providers like. */
export const externalIdentity = (providerId: string, subjectHash: string): Key => ({
  pk: `IDENTITY#${providerId}#${subjectHash}`,
  sk: 'USER',
})
/** A sign-in that has left for a provider, by the hash of its state; expires. */
export const signInAttempt = (stateHash: string): Key => ({ pk: `SIGN-IN#${stateHash}`, sk: 'ATTEMPT' })
/** A sign-in that has come back, by the hash of the code that fetches its tokens; expires. */
export const signInCode = (codeHash: string): Key => ({ pk: `SIGN-IN#${codeHash}`, sk: 'CODE' })
/** A request for consent that has left for a provider, by the hash of its state; expires. */
export const consentRequest = (stateHash: string): Key => ({ pk: `CONSENT#${stateHash}`, sk: 'REQUEST' })

/** Which release serves, which one did before it, and the job that changes it just now. */
export const updateState = (): Key => ({ pk: 'PLATFORM', sk: 'UPDATE' })
/** What the last look at the releases has found. */
export const updateCheck = (): Key => ({ pk: 'PLATFORM', sk: 'UPDATE-CHECK' })
/** How often a version of the platform failed unexpectedly in one minute; expires. */
export const versionErrorCount = (version: string, minute: number): Key => ({
  pk: `FAULTS#${version}`,
  sk: `M#${minute}`,
})

/** Partitions of the due index: enough to spread writes, few enough to read them all every minute. */
export const dueShards = 4

const shardOf = (id: string): number => (id.codePointAt(id.length - 1) ?? 0) % dueShards

export const duePartition = (shard: number): string => `DUE#${shard}`

/** Index attributes of a thing that the sweep must look at from `dueAtMs` on. */
export const due = (id: string, dueAtMs: number): { duepk: string; duesk: string } => ({
  duepk: duePartition(shardOf(id)),
  duesk: `${dueSort(dueAtMs)}#${id}`,
})

/** When a thing that is filed so is due; 0 where it is not filed. */
export const dueTimeOf = (duesk: string | undefined): number => Number(duesk?.split('#')[0] ?? 0)

export const dueSort = (ms: number): string => String(Math.floor(ms)).padStart(15, '0')

/** Index attributes that file a cluster under its type and status. */
export const clusterIndexKeys = (organisationId: string, type: string, status: string) => ({
  gsi1pk: clusterPartition(organisationId, { status }),
  gsi2pk: clusterPartition(organisationId, { type }),
  gsi3pk: clusterPartition(organisationId, { type, status }),
})

/** The index partition that holds the clusters of a filter. Short: every cluster's row carries three of them. */
export const clusterPartition = (organisationId: string, filter: { type?: string; status?: string }): string =>
  [organisationId, filter.type, filter.status].filter((part) => part !== undefined).join('#')
