import * as z from 'zod'
import { id, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { version } from './manifest.ts'

export const updateActions = ['apply', 'rollback'] as const
export type UpdateAction = (typeof updateActions)[number]

const RefusedRelease = z
  .object({ version: z.string().max(128), reason: z.string().max(500) })
  .meta({ id: 'RefusedRelease', example: { version: '9.9.9', reason: 'No trusted key has signed it.' } })

/** Result of an update check. `refused` lists newer releases that cannot be applied. */
export const UpdateCheck = z
  .object({
    currentVersion: version,
    latestVersion: version.meta({ description: 'The newest applicable release, or the current version' }),
    updateAvailable: z.boolean(),
    releaseNotesUrl: z.string().max(2000).optional().meta({ description: 'Absent if the platform is up to date' }),
    checkedAt: timestamp.meta({ description: 'Time of the last successful check' }),
    previousVersion: version.optional().meta({ description: 'Version that a rollback restores' }),
    jobId: id('job').optional().meta({ description: 'The update in progress' }),
    refused: z.array(RefusedRelease).max(20),
  })
  .meta({ id: 'UpdateCheck' })

export const UpdateRequest = z
  .strictObject({
    action: z.enum(updateActions),
    targetVersion: z.string().max(128).optional().meta({
      description: 'Version to update to; optional for a rollback, which accepts only the previous version',
      example: '1.2.0',
    }),
    force: z.boolean().optional().meta({ description: 'Update even if jobs are running' }),
  })
  .meta({ id: 'UpdateRequest' })

export const UpdateAccepted = z
  .object({ jobId: id('job'), action: z.enum(updateActions), targetVersion: version, status: z.literal('InProgress') })
  .meta({ id: 'UpdateAccepted' })

export type UpdateCheck = z.infer<typeof UpdateCheck>
export type UpdateRequest = z.infer<typeof UpdateRequest>
export type UpdateAccepted = z.infer<typeof UpdateAccepted>

const common = { access: 'platform:admin', tags: ['Updates'] } as const

export const checkForUpdate = createRoute({
  ...common,
  method: 'get',
  path: '/api/v1/platform/updates/check',
  summary: 'Check for a newer release',
  description: 'Reads the release repository. Returns the last result if the repository cannot be read.',
  responses: { 200: { description: 'The available release', content: json(UpdateCheck) } },
  errors: ['release_source_unreachable'],
  capabilities: ['table:read', 'table:write', 'secret:registries', 'queue:events'],
})

export const applyUpdate = createRoute({
  ...common,
  method: 'put',
  path: '/api/v1/platform/updates/apply',
  summary: 'Update the platform or roll back to the previous version',
  description: 'Starts a job. If a step fails, the job rolls back to the previous version.',
  request: { body: jsonBody(UpdateRequest) },
  responses: { 202: { description: 'Accepted; poll GET /jobs/{jobId}', content: json(UpdateAccepted) } },
  errors: [
    'version_not_available',
    'release_source_unreachable',
    'infrastructure_update_required',
    'no_previous_version',
    'update_in_progress',
    'active_jobs',
    'conflict',
  ],
  capabilities: ['table:read', 'table:write', 'secret:registries', 'queue:updates', 'queue:events'],
})
