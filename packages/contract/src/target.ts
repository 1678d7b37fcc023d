import * as z from 'zod'
import { id, pathId } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { SelectorText } from './label.ts'

/** Maximum number of clusters that a target lists by their identifiers. */
const targetIdLimit = 10_000
/** Maximum number of clusters of a target. */
export const targetCountLimit = 100_000

/** The clusters of a batch, a relay update or a bulk change. They are determined once, at the start. */
export const Target = z
  .strictObject({
    clusterIds: z.array(pathId('clus')).min(1).max(targetIdLimit).optional(),
    selector: SelectorText.optional(),
    savedFilterId: pathId('filter').optional().meta({
      description: 'A saved filter of the caller with the context `clusters`',
    }),
    all: z.literal(true).optional().meta({ description: 'All clusters of the organisation' }),
  })
  .refine(
    (target) => Object.values(target).filter((member) => member !== undefined).length === 1,
    'must have exactly one of clusterIds, selector, savedFilterId and all',
  )
  .meta({ id: 'Target', minProperties: 1, maxProperties: 1, example: { selector: 'env=prod,!legacy' } })

export const TargetResolution = z
  .strictObject({
    target: Target,
    includeIds: z.boolean().optional().meta({ description: 'Whether the response contains `clusterIds`' }),
    includeStatus: z.boolean().optional().meta({ description: 'Whether the response contains `byStatus`' }),
  })
  .meta({ id: 'TargetResolution' })

const count = z.int32().min(0).meta({ example: 1 })

export const ResolvedTarget = z
  .object({
    resolvedCount: z.int32().min(0).meta({ description: 'Number of clusters', example: 1 }),
    names: z
      .array(z.string().max(64))
      .max(10)
      .meta({
        description: 'Names of the newest ten clusters, or of the first ten `clusterIds`',
        example: ['berlin-1'],
      }),
    clusterIds: z
      .array(id('clus'))
      .max(targetCountLimit)
      .optional()
      .meta({ description: 'With `includeIds`: all clusters, newest first, or in the order of the request' }),
    byStatus: z.object({ Healthy: count, Degraded: count, Pending: count, Offline: count }).optional().meta({
      description:
        'With `includeStatus`: the number of clusters in each status. It may lag behind by up to a minute for more than 500 clusters',
    }),
  })
  .meta({ id: 'ResolvedTarget' })

export type Target = z.infer<typeof Target>
export type TargetResolution = z.infer<typeof TargetResolution>
export type ResolvedTarget = z.infer<typeof ResolvedTarget>

export const resolveTarget = createRoute({
  method: 'post',
  path: '/api/v1/targets/resolve',
  access: 'clusters:read',
  readsOnly: true,
  tags: ['Clusters'],
  summary: 'Count the clusters of a target',
  description:
    'Includes every matching cluster that existed before the request. Operations that accept a target resolve it again.',
  request: { body: jsonBody(TargetResolution) },
  responses: {
    200: { description: 'The number of clusters, with the names of ten', content: json(ResolvedTarget) },
  },
  errors: ['cluster_forbidden', 'filter_not_found', 'filter_not_applicable'],
  capabilities: ['table:read'],
})
