import * as z from 'zod'
import { id, line, pageOf, paging, pathId, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { NodeFacts } from './facts.ts'
import { jobStatuses } from './job.ts'
import { LabelChange, LabelKeys, Labels, LabelSet, SelectorText } from './label.ts'
import { Target } from './target.ts'

export const clusterTypes = ['Hypervisor', 'CloudLocal'] as const
export const clusterStatuses = ['Healthy', 'Degraded', 'Pending', 'Offline'] as const
export const nodeStatuses = ['Online', 'Offline', 'Unknown'] as const
export const relayStatuses = ['Connected', 'Stale', 'Disconnected', 'Revoked'] as const

/** Fields by which the list of clusters can be sorted. */
export const clusterSortFields = [
  'name',
  'registeredAt',
  'status',
  'lastSeenAt',
  'nodeCount',
  'type',
  'site',
  'os',
  'arch',
  'relayVersion',
] as const
/** Maximum number of matching clusters for a sort by `lastSeenAt` or `nodeCount` in a large organisation. */
export const recordSortLimit = 500

const nodeSortFields = ['name', 'os', 'arch', 'cpus', 'memoryBytes', 'rootDiskFreeBytes'] as const
export type NodeSort = (typeof nodeSortFields)[number] | `-${(typeof nodeSortFields)[number]}`

export type ClusterSortField = (typeof clusterSortFields)[number]
export type ClusterSort = ClusterSortField | `-${ClusterSortField}`
export type ClusterStatus = (typeof clusterStatuses)[number]
export type ClusterType = (typeof clusterTypes)[number]
export type NodeStatus = (typeof nodeStatuses)[number]
export type RelayStatus = (typeof relayStatuses)[number]

const ClusterName = line(3, 64).meta({ description: 'Unique within the organisation', example: 'berlin-1' })

const LastJob = z
  .object({
    id: id('job'),
    status: z.enum(jobStatuses),
    createdAt: timestamp,
    title: z.string().max(100).meta({ example: 'Rotate logs' }),
    name: z.string().max(100).optional().meta({ example: 'Rotate logs' }),
  })
  .meta({ id: 'LastJob' })

/** A cluster in lists. `lastSeenAt` is null before enrollment. */
export const ClusterSummary = z
  .object({
    id: id('clus'),
    name: z.string().max(64).meta({ example: 'berlin-1' }),
    type: z.enum(clusterTypes),
    status: z.enum(clusterStatuses),
    nodeCount: z.int32().min(0).meta({ example: 1 }),
    siteId: id('site').optional(),
    labels: Labels,
    registeredAt: timestamp,
    lastSeenAt: timestamp.nullable(),
    awaitsApproval: z.literal(true).optional().meta({
      description: 'Present while the relay of the cluster waits for approval; see `POST /clusters/{id}/approve`',
    }),
    lastJobId: id('job').optional().meta({
      description: 'The newest job of the cluster. Absent before the first one',
    }),
    lastJob: LastJob.optional().meta({
      description: 'With `include=lastJob` in the list: that job, unless its retention has ended',
    }),
  })
  .meta({ id: 'ClusterSummary' })

export const Node = z
  .object({
    id: id('node'),
    name: z.string().max(64).meta({ example: 'node-1' }),
    status: z.enum(nodeStatuses),
    facts: NodeFacts.optional().meta({ description: 'Absent until the relay has reported them' }),
  })
  .meta({ id: 'Node' })

export const Relay = z
  .object({
    id: id('relay'),
    displayName: z.string().max(64).meta({ example: 'relay on node-1' }),
    status: z.enum(relayStatuses),
    lastHeartbeatAt: timestamp,
    version: z.string().max(64).optional().meta({ description: 'Version of the program', example: '0.1.0' }),
    channel: z.enum(['open', 'none']).meta({
      description: 'Whether the relay has a control channel. Without one it asks for work at intervals',
    }),
    scriptsIsolated: z.boolean().optional().meta({
      description:
        'Whether scripts cannot read the key of the relay, because they run as another user (`--run-as`) or on other machines. Absent until the relay reports it',
    }),
  })
  .meta({ id: 'Relay' })

/** A cluster with its nodes. `relay` is null before enrollment. */
export const ClusterDetail = ClusterSummary.extend({
  nodes: z.array(Node).max(2000),
  relay: z.union([Relay, z.null()]),
}).meta({ id: 'ClusterDetail' })

/** A node in the list of all nodes. */
export const NodeSummary = Node.extend({
  clusterId: id('clus'),
  clusterName: z.string().max(64).meta({ example: 'berlin-1' }),
}).meta({ id: 'NodeSummary' })

export const ClusterRegistration = z
  .strictObject({
    name: ClusterName,
    type: z.enum(clusterTypes),
    siteId: z.string().max(200).optional(),
    labels: LabelSet.optional(),
  })
  .meta({ id: 'ClusterRegistration' })

/** An enrollment token of a cluster and the command that uses it. The token is returned only once. */
export const Enrollment = z
  .object({
    enrollmentToken: z.string().max(200).meta({ description: 'Valid once, within 24 hours' }),
    relayCommand: z.string().max(1000).meta({
      description: 'Command to run on the machine that executes the scripts',
      example:
        'curl -fsSL https://platform.example.com/relay/relay.mjs -o platform-relay.mjs && PLAT_ENROLLMENT_TOKEN=… node platform-relay.mjs --server https://platform.example.com',
    }),
  })
  .meta({ id: 'Enrollment' })

export const RegisteredCluster = Enrollment.extend({
  id: id('clus'),
  name: z.string().max(64).meta({ example: 'berlin-1' }),
  type: z.enum(clusterTypes),
  status: z.literal('Pending'),
  registeredAt: timestamp,
}).meta({ id: 'RegisteredCluster' })

export const ClusterUpdate = z
  .strictObject({
    name: ClusterName.optional(),
    siteId: z.string().max(200).nullable().optional().meta({ description: 'null removes the cluster from its site' }),
    labels: LabelChange.optional(),
  })
  .meta({ id: 'ClusterUpdate' })

export type ClusterSummary = z.infer<typeof ClusterSummary>
export type ClusterDetail = z.infer<typeof ClusterDetail>
export type ClusterRegistration = z.infer<typeof ClusterRegistration>
export type BulkLabelChange = z.infer<typeof BulkLabelChange>
export type BulkSiteChange = z.infer<typeof BulkSiteChange>
export type BulkChangeResult = z.infer<typeof BulkChangeResult>
export type LabelList = z.infer<typeof LabelList>
export type ClusterUpdate = z.infer<typeof ClusterUpdate>
export type RegisteredCluster = z.infer<typeof RegisteredCluster>
export type Enrollment = z.infer<typeof Enrollment>
export type Node = z.infer<typeof Node>
export type NodeSummary = z.infer<typeof NodeSummary>

const params = z.object({ id: pathId('clus') })
const clusterIdList = /^clus_[0-9a-hjkmnp-tv-z]{26}(?:,clus_[0-9a-hjkmnp-tv-z]{26}){0,99}$/

/** Limits of the response of `GET /clusters/labels`. `valuesOfKey` replaces `values` if the request names a key. */
export const labelListLimits = { keys: 500, values: 50, valuesOfKey: 5000 } as const

const clusterCount = z.int32().min(0).meta({ description: 'Number of clusters that have it', example: 12 })

/** A label key with its most frequent values. */
export const LabelSummary = z
  .object({
    key: z.string().max(63).meta({ example: 'env' }),
    clusterCount,
    values: z
      .array(z.object({ value: z.string().max(63).meta({ example: 'prod' }), clusterCount }))
      .max(labelListLimits.valuesOfKey),
    hasMoreValues: z
      .boolean()
      .meta({ description: 'Whether further values exist. With `key`, more values are listed' }),
  })
  .meta({ id: 'LabelSummary' })

export const LabelList = z
  .object({
    items: z.array(LabelSummary).max(labelListLimits.keys),
    hasMoreKeys: z.boolean().meta({ description: 'Whether further keys exist' }),
  })
  .meta({ id: 'LabelList' })

/** Maximum number of clusters that one request labels or moves. */
export const bulkChangeLimit = 500

/** Labels that are set on, or removed from, every cluster of a target. */
export const BulkLabelChange = z
  .strictObject({ target: Target, set: LabelSet.optional(), remove: LabelKeys.optional() })
  .refine(({ set = {}, remove = [] }) => Object.keys(set).length + remove.length > 0, {
    message: 'must set or remove a label',
    path: ['set'],
  })
  .refine(({ set = {}, remove = [] }) => remove.every((key) => !Object.hasOwn(set, key)), {
    message: 'must not contain a key that is also set',
    path: ['remove'],
  })
  .meta({ id: 'BulkLabelChange' })

export const BulkSiteChange = z
  .strictObject({
    target: Target,
    siteId: z.string().max(200).nullable().meta({ description: 'null removes the clusters from their sites' }),
  })
  .meta({ id: 'BulkSiteChange' })

export const BulkChangeResult = z
  .object({
    resolvedCount: z.int32().min(0).meta({ description: 'Number of clusters of the target', example: 12 }),
    changedCount: z.int32().min(0).meta({ description: 'Number of clusters that changed', example: 3 }),
  })
  .meta({ id: 'BulkChangeResult' })

const ClusterPage = pageOf(ClusterSummary).extend({
  searchedAll: z.boolean().optional().meta({
    description:
      'With `search`, but not with `ids`: whether all clusters were searched; if false, others may match too',
  }),
})

export const listClusters = createRoute({
  method: 'get',
  path: '/api/v1/clusters',
  access: 'clusters:read',
  tags: ['Clusters'],
  summary: 'The clusters of the organisation, newest first',
  description:
    'With `sort`, a page reads at least one small item of each cluster, so it costs more than the default order. The order is exact, except that `status` lags behind by up to a minute if the organisation has more than 1,000 clusters and more than 500 match. If you read by cursor and a value changes between pages, its cluster may appear twice or not at all, except with `registeredAt`.',
  request: {
    query: z.strictObject({
      status: z.enum(clusterStatuses).optional(),
      type: z.enum(clusterTypes).optional(),
      search: z.string().max(64).optional().meta({
        description:
          'Part of the name, case-insensitive. A search that is combined with `status` or `type`, but not with `ids`, a selector or another sort order, covers only the newest 10,000 clusters; see `searchedAll`',
        example: 'berlin',
      }),
      selector: SelectorText.optional(),
      ids: z.string().max(3200).regex(clusterIdList).optional().meta({
        description:
          'Only these clusters, in this order: up to 100 comma-separated identifiers. Removed clusters are skipped',
        example: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa,clus_01jd8w5k3zr9x2m4c7t6v0b1qb',
      }),
      filterId: z.string().max(200).optional().meta({
        description: 'A saved filter of the caller with the context `clusters`. Other parameters override it',
      }),
      sort: z
        .enum(clusterSortFields.flatMap((field) => [field, `-${field}` as const]))
        .optional()
        .meta({
          description: `Order of the list; the default is \`-registeredAt\`. A leading \`-\` reverses it, but clusters without a value always come last, and clusters with equal values are listed newest first. Numbers in texts are compared by value, and names by their first 40 characters, ignoring case. \`site\` compares the names of sites, and \`status\` starts with Offline, Degraded and Pending. \`lastSeenAt\` and \`nodeCount\` accept at most ${recordSortLimit} matching clusters if the organisation has more than 1,000. Not together with \`ids\``,
          example: 'name',
        }),
      include: z.enum(['lastJob']).optional().meta({
        description: 'Adds `lastJob` to each cluster. Requires the permission `jobs:read`',
      }),
      ...paging,
    }),
  },
  responses: { 200: { description: 'A page of clusters', content: json(ClusterPage) } },
  errors: ['filter_not_found', 'filter_not_applicable'],
  capabilities: ['table:read'],
})

export const listLabels = createRoute({
  method: 'get',
  path: '/api/v1/clusters/labels',
  access: 'clusters:read',
  tags: ['Clusters'],
  summary: 'The label keys and values of all clusters, with the number of clusters',
  description:
    'Most frequent first: at most 500 keys with 50 values each, or 5,000 values of one key. Reads the labels of all clusters, so do not call it for every keystroke.',
  request: {
    query: z.strictObject({
      key: z.string().max(63).optional().meta({ description: 'Only this key, with more values', example: 'env' }),
    }),
  },
  responses: { 200: { description: 'Keys and values', content: json(LabelList) } },
  capabilities: ['table:read'],
})

export const labelClusters = createRoute({
  method: 'post',
  path: '/api/v1/clusters/labels',
  access: 'clusters:write',
  tags: ['Clusters'],
  summary: 'Set and remove labels of many clusters',
  description:
    'For a target of at most 500 clusters. Nothing changes if a cluster would have too many labels. After an error or a lost response, send the request again: it changes the remaining clusters. The default limit is ten requests per minute and organisation, shared with `POST /clusters/site`.',
  request: { body: jsonBody(BulkLabelChange) },
  responses: { 200: { description: 'The clusters are labelled', content: json(BulkChangeResult) } },
  errors: [
    'batch_limit_exceeded',
    'cluster_forbidden',
    'filter_not_found',
    'filter_not_applicable',
    'limit_reached',
    'conflict',
  ],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

export const moveClusters = createRoute({
  method: 'post',
  path: '/api/v1/clusters/site',
  access: 'clusters:write',
  tags: ['Clusters'],
  summary: 'Move many clusters to a site',
  description:
    'For a target of at most 500 clusters. After an error or a lost response, send the request again: it moves the remaining clusters. The default limit is ten requests per minute and organisation, shared with `POST /clusters/labels`.',
  request: { body: jsonBody(BulkSiteChange) },
  responses: { 200: { description: 'The clusters are moved', content: json(BulkChangeResult) } },
  errors: [
    'batch_limit_exceeded',
    'cluster_forbidden',
    'filter_not_found',
    'filter_not_applicable',
    'unknown_site',
    'conflict',
  ],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

export const listNodes = createRoute({
  method: 'get',
  path: '/api/v1/nodes',
  access: 'clusters:read',
  tags: ['Clusters'],
  summary: 'The nodes of all clusters, those of the newest cluster first',
  description:
    'A request searches about 12,000 clusters at most; see `searchedAll`. With a cursor, it searches only until the page is full.',
  request: {
    query: z.strictObject({
      selector: SelectorText.optional(),
      os: z.string().max(100).optional().meta({ description: 'Operating system, as in the facts', example: 'linux' }),
      search: z.string().max(64).optional().meta({ description: 'Part of the name of the node, case-insensitive' }),
      sort: z
        .enum(nodeSortFields.flatMap((field) => [field, `-${field}` as const]))
        .optional()
        .meta({
          description:
            'Order of the list. A leading `-` reverses it, but nodes without a value always come last. Numbers in texts are compared by value, and texts by their first 40 characters, ignoring case in `name` and `os`. `os` compares `osVersion`, or `os` without it. Every page then searches all clusters, and more than about 12,000 are rejected. If you read by cursor and a value changes between pages, its node may appear twice or not at all',
          example: 'name',
        }),
      ...paging,
    }),
  },
  responses: {
    200: {
      description: 'A page of nodes',
      content: json(
        pageOf(NodeSummary).extend({
          searchedAll: z.boolean().meta({
            description:
              'Whether the request searched all remaining clusters. If false, `totalCount` counts the matches of this request, and the page of `nextCursor` continues',
          }),
        }),
      ),
    },
  },
  capabilities: ['table:read'],
})

export const registerCluster = createRoute({
  method: 'post',
  path: '/api/v1/clusters',
  access: 'clusters:write',
  tags: ['Clusters'],
  summary: 'Register a cluster',
  request: { body: jsonBody(ClusterRegistration) },
  responses: { 201: { description: 'Registered; run relayCommand next', content: json(RegisteredCluster) } },
  errors: ['cluster_name_taken', 'unknown_site', 'limit_reached', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

export const getCluster = createRoute({
  method: 'get',
  path: '/api/v1/clusters/{id}',
  access: 'clusters:read',
  tags: ['Clusters'],
  summary: 'One cluster with its nodes and relay',
  request: { params },
  responses: { 200: { description: 'The cluster', content: json(ClusterDetail) } },
  errors: ['cluster_not_found'],
  capabilities: ['table:read'],
})

export const updateCluster = createRoute({
  method: 'patch',
  path: '/api/v1/clusters/{id}',
  access: 'clusters:write',
  tags: ['Clusters'],
  summary: 'Rename a cluster, move it to a site or change its labels',
  request: { params, body: jsonBody(ClusterUpdate) },
  responses: { 200: { description: 'The updated cluster', content: json(ClusterDetail) } },
  errors: ['cluster_not_found', 'cluster_name_taken', 'unknown_site', 'limit_reached', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

export const deleteCluster = createRoute({
  method: 'delete',
  path: '/api/v1/clusters/{id}',
  access: 'clusters:admin',
  tags: ['Clusters'],
  summary: 'Remove a cluster and all its data from the platform',
  description:
    'Does not touch the nodes. Jobs of the cluster are not found from now on, and pending webhook deliveries about them are not sent. While the jobs of 4,000 removed clusters are still being deleted, the answer is 429 `rate_limited`.',
  request: { params },
  responses: { 204: { description: 'Removed' } },
  errors: ['cluster_not_found', 'cluster_has_active_jobs', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events', 'channel:wake'],
})

export const issueEnrollmentToken = createRoute({
  method: 'post',
  path: '/api/v1/clusters/{id}/enrollment-token',
  access: 'clusters:write',
  tags: ['Clusters'],
  summary: 'Issue a new enrollment token',
  description: 'Revokes unused tokens. Enrolling with the new one replaces the relay and revokes its key.',
  request: { params },
  responses: { 201: { description: 'The new token', content: json(Enrollment) } },
  errors: ['cluster_not_found', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

export const approveCluster = createRoute({
  method: 'post',
  path: '/api/v1/clusters/{id}/approve',
  access: 'clusters:admin',
  tags: ['Clusters'],
  summary: 'Approve the relay of a cluster',
  description:
    'For a cluster that was created with an enrollment key that requires approval. Check the machine first: the audit trail has its name and address. To refuse it, remove the cluster.',
  request: { params },
  responses: { 204: { description: 'Approved' } },
  errors: ['cluster_not_found', 'no_pending_relay', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})
