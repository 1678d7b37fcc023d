import * as z from 'zod'
import { id, line, listOf, pathId, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'

/** What a user sets for itself: the dashboard's layout and saved filters (sections 2 and 4). */

const cells = z.int32().min(0).max(10_000).meta({ description: 'Cells of the dashboard grid', example: 4 })

/** Where a widget stands on the dashboard. */
export const WidgetPlacement = z
  .object({ widgetId: line(1, 100).meta({ example: 'cluster-health' }), x: cells, y: cells, w: cells, h: cells })
  .meta({ id: 'WidgetPlacement' })

const layout = z.array(WidgetPlacement).max(200)

export const DashboardLayout = z.object({ layout, updatedAt: timestamp }).meta({ id: 'DashboardLayout' })

/** `updatedAt` may come along, so that the answer of GET can be sent back; it is ignored. */
export const DashboardLayoutUpdate = z.object({ layout }).meta({ id: 'DashboardLayoutUpdate' })

/** The most saved filters that a user may have. */
export const savedFilterLimit = 100
const filterBytes = 16_384
const filterDepth = 16

const isFlat = (value: unknown, levels: number): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((member) => isFlat(member, levels - 1)))

const jsonBytes = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length

const FilterBody = z
  .record(z.string(), z.unknown())
  .refine((filter) => isFlat(filter, filterDepth), `must not be nested more than ${filterDepth} deep`)
  .refine((filter) => jsonBytes(filter) <= filterBytes, 'must be at most 16 KiB as JSON')
  .meta({
    description: 'What is filtered by: keys and values are free, at most 16 KiB',
    example: { status: 'Offline' },
  })

const FilterName = line(1, 100).meta({ example: 'What is offline' })
const FilterContext = line(1, 50).meta({ description: 'The list that the filter is for', example: 'clusters' })

export const SavedFilter = z
  .object({
    id: id('filter'),
    name: z.string().max(100).meta({ example: 'What is offline' }),
    context: z.string().max(50).meta({ example: 'clusters' }),
    filter: z.record(z.string(), z.unknown()).meta({ example: { status: 'Offline' } }),
    createdAt: timestamp,
  })
  .meta({ id: 'SavedFilter' })

export const SavedFilterCreation = z
  .object({ name: FilterName, context: FilterContext, filter: FilterBody })
  .meta({ id: 'SavedFilterCreation' })

export type DashboardLayout = z.infer<typeof DashboardLayout>
export type DashboardLayoutUpdate = z.infer<typeof DashboardLayoutUpdate>
export type SavedFilter = z.infer<typeof SavedFilter>
export type SavedFilterCreation = z.infer<typeof SavedFilterCreation>

const common = { access: 'user', tag: 'Preferences' } as const
const layoutPath = '/api/v1/users/me/dashboard-layout'
const filtersPath = '/api/v1/users/me/saved-filters'

export const getDashboardLayout = endpoint({
  ...common,
  method: 'GET',
  path: layoutPath,
  summary: 'The dashboard layout of the caller',
  description: 'The header `ETag` names this very layout: send it in `If-Match` to change no other.',
  responses: {
    200: { description: 'The layout', schema: DashboardLayout },
    204: { description: 'None was saved; the portal uses its default' },
  },
  uses: ['table:read'],
})

export const updateDashboardLayout = endpoint({
  ...common,
  method: 'PATCH',
  path: layoutPath,
  summary: 'Save the dashboard layout of the caller',
  description:
    'The last write wins. With `If-Match` the layout is saved only if it is still the one that the tag names. The header `ETag` names the layout that was saved.',
  request: {
    headers: z.object({
      'if-match': z
        .string()
        .max(1000)
        .optional()
        .meta({ description: 'An `ETag` of GET, or `*` for any saved layout', example: '"Zm9vYmFy"' }),
    }),
    body: DashboardLayoutUpdate,
  },
  responses: { 204: { description: 'Saved' } },
  fails: ['precondition_failed'],
  uses: ['table:write', 'queue:events'],
})

export const listSavedFilters = endpoint({
  ...common,
  method: 'GET',
  path: filtersPath,
  summary: 'The saved filters of the caller, newest first',
  responses: { 200: { description: 'Saved filters', schema: listOf(SavedFilter, savedFilterLimit) } },
  uses: ['table:read'],
})

export const createSavedFilter = endpoint({
  ...common,
  method: 'POST',
  path: filtersPath,
  summary: 'Save a filter',
  description: 'One of the context `clusters` can be applied: `GET /api/v1/clusters?filterId=`.',
  request: { body: SavedFilterCreation },
  responses: { 201: { description: 'The saved filter', schema: SavedFilter } },
  fails: ['limit_reached'],
  uses: ['table:write', 'queue:events'],
})

export const deleteSavedFilter = endpoint({
  ...common,
  method: 'DELETE',
  path: `${filtersPath}/{id}`,
  summary: 'Remove a saved filter',
  request: { params: z.object({ id: pathId('filter') }) },
  responses: { 204: { description: 'Removed' } },
  fails: ['filter_not_found'],
  uses: ['table:write', 'queue:events'],
})
