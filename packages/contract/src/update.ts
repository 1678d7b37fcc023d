import * as z from 'zod'
import { id, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'
import { version } from './manifest.ts'

/** Updates of the platform (section 4, D50, D51). */

export const updateActions = ['apply', 'rollback'] as const
export type UpdateAction = (typeof updateActions)[number]

/** A release that is newer and cannot be applied, and why. */
const RefusedRelease = z
  .object({ version: z.string().max(128), reason: z.string().max(500) })
  .meta({ id: 'RefusedRelease', example: { version: '9.9.9', reason: 'No trusted key has signed it.' } })

/** Update check result of section 2; what stands behind `checkedAt` are additions. */
export const UpdateCheck = z
  .object({
    currentVersion: version,
    latestVersion: version.meta({ description: 'The newest release that can be applied, else the current version' }),
    updateAvailable: z.boolean(),
    releaseNotesUrl: z.string().max(2000).optional().meta({ description: 'Absent when up to date' }),
    checkedAt: timestamp.meta({ description: 'When the releases were read; they could not be read since' }),
    previousVersion: version.optional().meta({ description: 'What a rollback goes back to' }),
    jobId: id('job').optional().meta({ description: 'The update that is under way' }),
    refused: z.array(RefusedRelease).max(20),
  })
  .meta({ id: 'UpdateCheck' })

export const UpdateRequest = z
  .object({
    action: z.enum(updateActions),
    targetVersion: z.string().max(128).optional().meta({
      description: 'What to update to; a rollback needs none, and where it names one it is the previous',
      example: '1.2.0',
    }),
    force: z.boolean().optional().meta({ description: 'Update although jobs are running' }),
  })
  .meta({ id: 'UpdateRequest' })

export const UpdateAccepted = z
  .object({ jobId: id('job'), action: z.enum(updateActions), targetVersion: version, status: z.literal('InProgress') })
  .meta({ id: 'UpdateAccepted' })

export type UpdateCheck = z.infer<typeof UpdateCheck>
export type UpdateRequest = z.infer<typeof UpdateRequest>
export type UpdateAccepted = z.infer<typeof UpdateAccepted>

const updates = { access: 'platform:admin', tag: 'Updates' } as const

export const checkForUpdate = endpoint({
  ...updates,
  method: 'GET',
  path: '/api/v1/platform/updates/check',
  summary: 'Look for a newer release',
  description: 'Reads the release repository. Where that cannot be read the last result is answered, as old as it is.',
  responses: { 200: { description: 'What there is', schema: UpdateCheck } },
  fails: ['release_source_unreachable'],
  uses: ['table:read', 'table:write', 'secret:registries', 'queue:events'],
})

export const applyUpdate = endpoint({
  ...updates,
  method: 'PUT',
  path: '/api/v1/platform/updates/apply',
  summary: 'Update the platform, or go back to the previous version',
  description: 'A job does it; a step that fails goes back to the version before by itself.',
  request: { body: UpdateRequest },
  responses: { 202: { description: 'Accepted; poll GET /jobs/{jobId}', schema: UpdateAccepted } },
  fails: [
    'version_not_available',
    'release_source_unreachable',
    'infrastructure_update_required',
    'no_previous_version',
    'update_in_progress',
    'active_jobs',
    'conflict',
  ],
  uses: ['table:read', 'table:write', 'secret:registries', 'queue:updates', 'queue:events'],
})
