/**
 * The whole single-table design on one page: entity → pk, sk, and which reads need it.
 * Tenant data carries its organisation in the partition key, so that a foreign id is "not found" by construction.
 *
 * Indexes project keys only. Every index sort key is or ends with the item's own id, so that no two entries are alike.
 *   gsi1  clusters of an organisation by status; jobs of a cluster   gsi1pk, id
 *   gsi2  clusters of an organisation by type                        gsi2pk, id
 *   gsi3  clusters of an organisation by type and status             gsi3pk, id
 *   due   whatever the sweep must look at, by due time               duepk, duesk
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

const fold = (name: string): string => name.normalize('NFC').toLowerCase()

/** Setup state: whether it is complete, the hash of the initial admin token, how often the API started. */
export const platform = (): Key => ({ pk: 'PLATFORM', sk: 'STATE' })

/** Public keys that verify access tokens. Read once per process and again for an unknown key. */
export const accessKeys = (): Key => ({ pk: 'PLATFORM', sk: 'ACCESS-KEYS' })

export const organisation = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'ORGANISATION' })

/** Users of an organisation, by id. */
export const user = (organisationId: string, userId: string): Key => ({
  pk: `ORG#${organisationId}#USER`,
  sk: userId,
})

/** Sign-in by name: where the user is, and the password hash. Names are unique on the platform. */
export const username = (name: string): Key => ({ pk: `USERNAME#${fold(name)}`, sk: 'CREDENTIAL' })

/** Failed sign-ins in one minute, by user name or address; expires. */
export const failedSignIns = (who: string, minute: number): Key => ({ pk: `FAILED#${fold(who)}`, sk: `M#${minute}` })

/** One sign-in. Its refresh tokens stand beside it: one family (D4). */
export const session = (sessionId: string): Key => ({ pk: `SESSION#${sessionId}`, sk: 'SESSION' })
export const refreshToken = (sessionId: string, tokenId: string): Key => ({
  pk: `SESSION#${sessionId}`,
  sk: `TOKEN#${tokenId}`,
})

/** Sites of an organisation; newest last by id. */
export const site = (organisationId: string, siteId: string): Key => ({ pk: `ORG#${organisationId}#SITE`, sk: siteId })
export const siteName = (organisationId: string, name: string): Key => ({
  pk: `ORG#${organisationId}#SITE-NAME#${fold(name)}`,
  sk: 'NAME',
})

/** Clusters of an organisation; newest last by id. The row holds presence, so that one page is one query. */
export const cluster = (organisationId: string, clusterId: string): Key => ({
  pk: `ORG#${organisationId}#CLUSTER`,
  sk: clusterId,
})
/** The organisation that a partition of its things belongs to. */
export const organisationOf = (pk: string): string => pk.split('#')[1] ?? ''

/** Where every bucket of clusters begins: reading a page never walks the pages before it. */
export const clusterRanks = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'CLUSTER-RANKS' })
/** Clusters per status and type, for totals of filtered lists. */
export const clusterTally = (organisationId: string): Key => ({ pk: `ORG#${organisationId}`, sk: 'CLUSTER-TALLY' })
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
export const removedCluster = (clusterId: string): Key => ({ pk: `REMOVED#${clusterId}`, sk: 'CLUSTER' })

/** An enrollment token by its public id; expires. */
export const enrollment = (enrollmentId: string): Key => ({ pk: `ENROLLMENT#${enrollmentId}`, sk: 'ENROLLMENT' })

/** A relay by id: its key and its cluster. Written once; whether it is still the cluster's relay stands in the cluster. */
export const relay = (relayId: string): Key => ({ pk: `RELAY#${relayId}`, sk: 'RELAY' })
/** A request token that a relay has used; expires. */
export const relayRequest = (relayId: string, tokenId: string): Key => ({
  pk: `RELAY#${relayId}#REQUEST#${tokenId}`,
  sk: 'REQUEST',
})

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

/** Index attributes that file a job under its cluster. */
export const jobFiling = ({ clusterId }: { clusterId: string }) => ({ gsi1pk: clusterJobs(clusterId) })

/** The index partition that holds the jobs of a cluster. */
export const clusterJobs = (clusterId: string): string => `CLUSTER#${clusterId}#JOBS`

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
export const clusterFiling = (organisationId: string, type: string, status: string) => ({
  gsi1pk: clusterPartition(organisationId, { status }),
  gsi2pk: clusterPartition(organisationId, { type }),
  gsi3pk: clusterPartition(organisationId, { type, status }),
})

/** The index partition that holds the clusters of a filter. Short: every cluster's row carries three of them. */
export const clusterPartition = (organisationId: string, filter: { type?: string; status?: string }): string =>
  [organisationId, filter.type, filter.status].filter((part) => part !== undefined).join('#')
