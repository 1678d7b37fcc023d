import * as z from 'zod'
import { id, pageOf, paging, pathId, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { Submitter } from './job.ts'
import { SelectorText } from './label.ts'
import { version } from './manifest.ts'
import { Target } from './target.ts'

/** Maximum number of clusters of a relay update. */
export const relayUpdateClusterLimit = 20_000
/** Maximum number of relays that install an update at the same time. */
const concurrencyLimit = 500
const canaryLimit = 100

export const relayUpdateStatuses = ['Running', 'Completed', 'Stopped', 'Cancelled'] as const
export const relayUpdateClusterStatuses = ['Pending', 'Offered', 'Completed', 'RolledBack', 'Skipped'] as const

export const RelayUpdateCreation = z
  .strictObject({
    selector: SelectorText.optional(),
    target: Target.optional().meta({ description: 'Instead of `selector`' }),
    expectedCount: z.int32().min(0).optional().meta({
      description: 'Number of clusters that the target must have; otherwise the response is `target_changed`',
    }),
    version: version
      .optional()
      .meta({ description: 'The version that the platform offers, which is also the default', example: '1.10.0' }),
    canary: z
      .int32()
      .min(1)
      .max(canaryLimit)
      .optional()
      .meta({ description: 'Number of relays that must complete the update before others start; default 1' }),
    maxConcurrent: z
      .int32()
      .min(1)
      .max(concurrencyLimit)
      .optional()
      .meta({ description: 'Maximum number of relays that install the update at the same time; default 50' }),
  })
  .refine(({ selector, target }) => (selector === undefined) !== (target === undefined), {
    message: 'is required without target, and must be absent with it',
    path: ['selector'],
  })
  .meta({ id: 'RelayUpdateCreation', example: { selector: 'env=prod', canary: 2, maxConcurrent: 20 } })

const count = z.int32().min(0)

const RelayUpdateCounts = z
  .object({ pending: count, offered: count, completed: count, rolledBack: count, skipped: count })
  .meta({ id: 'RelayUpdateCounts', example: { pending: 180, offered: 20, completed: 97, rolledBack: 1, skipped: 2 } })

export const RelayUpdate = z
  .object({
    id: id('rupd'),
    version: z.string().max(128).meta({ example: '1.10.0' }),
    status: z.enum(relayUpdateStatuses).meta({
      description:
        'Stopped: the platform ended it, see `statusReason`. Relays with an earlier offer may still install it',
    }),
    statusReason: z.string().max(1000).optional().meta({ description: 'Why the platform stopped the update' }),
    target: Target,
    canary: z.int32(),
    maxConcurrent: z.int32(),
    resolvedCount: count.meta({ description: 'Number of clusters', example: 300 }),
    counts: RelayUpdateCounts,
    createdAt: timestamp,
    createdBy: Submitter,
    finishedAt: timestamp.optional(),
  })
  .meta({ id: 'RelayUpdate' })

const RelayUpdateCluster = z
  .object({
    clusterId: id('clus'),
    name: z.string().max(64).meta({ description: 'Empty if the cluster was removed', example: 'berlin-1' }),
    status: z.enum(relayUpdateClusterStatuses),
    reason: z
      .string()
      .max(300)
      .optional()
      .meta({ description: 'Why it was rolled back or skipped, or why a relay with an offer waits' }),
  })
  .meta({ id: 'RelayUpdateCluster' })

export type RelayUpdateCreation = z.infer<typeof RelayUpdateCreation>
export type RelayUpdate = z.infer<typeof RelayUpdate>
export type RelayUpdateCluster = z.infer<typeof RelayUpdateCluster>
export type RelayUpdateClusterStatus = (typeof relayUpdateClusterStatuses)[number]

const params = z.object({ id: pathId('rupd') })
const changes = ['table:read', 'table:write', 'queue:events'] as const

export const listRelayUpdates = createRoute({
  method: 'get',
  path: '/api/v1/relay-updates',
  access: 'clusters:admin',
  tags: ['Clusters'],
  summary: 'The relay updates of the organisation, newest first',
  request: { query: z.strictObject(paging) },
  responses: { 200: { description: 'A page of updates', content: json(pageOf(RelayUpdate)) } },
  capabilities: ['table:read'],
})

export const createRelayUpdate = createRoute({
  method: 'post',
  path: '/api/v1/relay-updates',
  access: 'clusters:admin',
  tags: ['Clusters'],
  summary: 'Update relays to the version of the platform',
  description:
    'Relays that are online first install it as canaries; the other ones follow in groups. Relays that are offline wait. The update stops if a canary or more than 5 % of the relays that were offered the version return to their previous one, if its creator loses `clusters:admin`, or if the platform is updated.',
  request: { body: jsonBody(RelayUpdateCreation) },
  responses: { 201: { description: 'The update', content: json(RelayUpdate) } },
  errors: [
    'relay_signature_missing',
    'version_not_available',
    'relay_update_running',
    'batch_limit_exceeded',
    'target_changed',
    'cluster_forbidden',
    'filter_not_found',
    'filter_not_applicable',
    'conflict',
  ],
  capabilities: [...changes],
})

export const getRelayUpdate = createRoute({
  method: 'get',
  path: '/api/v1/relay-updates/{id}',
  access: 'clusters:admin',
  tags: ['Clusters'],
  summary: 'A relay update and its progress',
  request: { params },
  responses: { 200: { description: 'The update', content: json(RelayUpdate) } },
  errors: ['relay_update_not_found'],
  capabilities: ['table:read'],
})

export const listRelayUpdateClusters = createRoute({
  method: 'get',
  path: '/api/v1/relay-updates/{id}/clusters',
  access: 'clusters:admin',
  tags: ['Clusters'],
  summary: 'The clusters of a relay update',
  description:
    'In the order of the target when the update started: newest first, or the order of `clusterIds`. `totalCount` includes only clusters with the requested `status`.',
  request: {
    params,
    query: z.strictObject({
      ...paging,
      status: z.enum(relayUpdateClusterStatuses).optional().meta({ description: 'Only clusters with this status' }),
    }),
  },
  responses: { 200: { description: 'A page of clusters', content: json(pageOf(RelayUpdateCluster)) } },
  errors: ['relay_update_not_found'],
  capabilities: ['table:read'],
})

export const cancelRelayUpdate = createRoute({
  method: 'post',
  path: '/api/v1/relay-updates/{id}/cancel',
  access: 'clusters:admin',
  tags: ['Clusters'],
  summary: 'Cancel a relay update',
  description: 'No relay receives an offer after the response. Relays that are already installing it may complete it.',
  request: { params },
  responses: { 200: { description: 'The cancelled update', content: json(RelayUpdate) } },
  errors: ['relay_update_not_found', 'relay_update_finished', 'conflict'],
  capabilities: [...changes],
})
