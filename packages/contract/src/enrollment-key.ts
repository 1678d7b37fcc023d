import * as z from 'zod'
import { clusterTypes } from './cluster.ts'
import { id, line, pageOf, paging, pathId, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { Submitter } from './job.ts'
import { Labels, LabelSet } from './label.ts'

/** Maximum number of enrollment keys of an organisation. */
export const enrollmentKeyLimit = 100
/** Maximum lifetime of an enrollment key, in days. */
export const maxEnrollmentKeyDays = 365

const fields = {
  name: line(1, 100).meta({ example: 'Edge sites 2026' }),
  type: z.enum(clusterTypes).optional().meta({ description: 'Type of the new clusters; default Hypervisor' }),
  siteId: z.string().max(200).optional().meta({ description: 'Site of the new clusters' }),
  labels: LabelSet.optional(),
  maxUses: z.int32().min(1).max(100_000).meta({ description: 'How many relays can enroll with it', example: 500 }),
  requireApproval: z.boolean().optional().meta({
    description:
      'Whether a new cluster waits for `POST /clusters/{id}/approve`. Until then it is Pending and its relay receives no jobs; default false',
  }),
  nameTemplate: line(1, 64).optional().meta({
    description:
      'Name of the new clusters, in which {hostname} is replaced; a name in use gets -2, -3 and so on; default {hostname}',
    example: 'edge-{hostname}',
  }),
}

export const EnrollmentKeyCreation = z
  .strictObject({
    ...fields,
    expiresAt: z.iso
      .datetime({ offset: true })
      .max(40)
      .meta({ description: `At most ${maxEnrollmentKeyDays} days ahead`, example: '2026-12-31T00:00:00.000Z' }),
  })
  .meta({ id: 'EnrollmentKeyCreation' })

/** A key with which many relays enroll; each enrollment creates a cluster. */
export const EnrollmentKey = z
  .object({
    id: id('ekey'),
    name: z.string().max(100).meta({ example: 'Edge sites 2026' }),
    type: z.enum(clusterTypes),
    siteId: id('site').optional(),
    labels: Labels,
    maxUses: z.int32(),
    usedCount: z.int32().min(0).meta({ example: 12 }),
    requireApproval: z.boolean(),
    nameTemplate: z.string().max(64).meta({ example: '{hostname}' }),
    expiresAt: timestamp,
    createdAt: timestamp,
    createdBy: Submitter,
    lastUsedAt: timestamp.optional(),
  })
  .meta({ id: 'EnrollmentKey' })

export const CreatedEnrollmentKey = EnrollmentKey.extend({
  enrollmentKey: z.string().max(200).meta({ description: 'The key; it is returned only once' }),
  relayCommand: z.string().max(1000).meta({
    description: 'Command to run on each machine',
    example:
      'curl -fsSL https://platform.example.com/relay/relay.mjs -o platform-relay.mjs && PLAT_ENROLLMENT_KEY=… node platform-relay.mjs --server https://platform.example.com',
  }),
}).meta({ id: 'CreatedEnrollmentKey' })

export type EnrollmentKeyCreation = z.infer<typeof EnrollmentKeyCreation>
export type EnrollmentKey = z.infer<typeof EnrollmentKey>
export type CreatedEnrollmentKey = z.infer<typeof CreatedEnrollmentKey>

export const listEnrollmentKeys = createRoute({
  method: 'get',
  path: '/api/v1/enrollment-keys',
  access: 'clusters:write',
  tags: ['Clusters'],
  summary: 'The enrollment keys of the organisation, newest first',
  request: { query: z.strictObject(paging) },
  responses: { 200: { description: 'A page of keys', content: json(pageOf(EnrollmentKey)) } },
  capabilities: ['table:read'],
})

export const createEnrollmentKey = createRoute({
  method: 'post',
  path: '/api/v1/enrollment-keys',
  access: 'clusters:write',
  tags: ['Clusters'],
  summary: 'Create an enrollment key',
  description:
    'Relays enroll with it, and each enrollment creates a cluster. The key stops working when its creator is removed or suspended or loses `clusters:write`, and when the API token that created it is revoked or expires.',
  request: { body: jsonBody(EnrollmentKeyCreation) },
  responses: { 201: { description: 'The key', content: json(CreatedEnrollmentKey) } },
  errors: ['unknown_site', 'limit_reached', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

export const deleteEnrollmentKey = createRoute({
  method: 'delete',
  path: '/api/v1/enrollment-keys/{id}',
  access: 'clusters:write',
  tags: ['Clusters'],
  summary: 'Revoke an enrollment key',
  description:
    'No further relay can enroll with it. Relays that have enrolled are not affected, and can repeat their enrollment for 7 days if the response was lost.',
  request: { params: z.object({ id: pathId('ekey') }) },
  responses: { 204: { description: 'Revoked' } },
  errors: ['enrollment_key_not_found', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})
