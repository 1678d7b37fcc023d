import * as z from 'zod'
import { id, jsonBytes, line, listOf, pathId, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { SelectorText } from './label.ts'

const cells = z.int32().min(0).max(10_000).meta({ description: 'Cells of the dashboard grid', example: 4 })

/** Position and size of a widget, in cells of the dashboard grid. */
export const WidgetPlacement = z
  .strictObject({
    widgetId: line(1, 100).meta({ example: 'cluster-health' }),
    x: cells,
    y: cells,
    w: cells,
    h: cells,
    selector: SelectorText.optional().meta({ description: 'The widget shows only clusters with these labels' }),
  })
  .meta({ id: 'WidgetPlacement' })

const layout = z.array(WidgetPlacement).max(200)

export const DashboardLayout = z.object({ layout, updatedAt: timestamp }).meta({ id: 'DashboardLayout' })

/** `updatedAt` is accepted and ignored, so that clients can send back the response of GET. */
export const DashboardLayoutUpdate = z
  .strictObject({ layout, updatedAt: z.iso.datetime().max(30).optional() })
  .meta({ id: 'DashboardLayoutUpdate' })

/** Maximum number of saved filters of a user. */
export const savedFilterLimit = 100
const maxFilterBytes = 16_384
const maxFilterDepth = 16

const isWithinDepth = (value: unknown, levels: number): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((member) => isWithinDepth(member, levels - 1)))

const FilterBody = z
  .record(z.string(), z.unknown())
  .refine((filter) => isWithinDepth(filter, maxFilterDepth), `must not be nested more than ${maxFilterDepth} deep`)
  .refine((filter) => jsonBytes(filter) <= maxFilterBytes, 'must be at most 16 KiB as JSON')
  .meta({
    description: 'Filter parameters: any keys and values, at most 16 KiB',
    example: { status: 'Offline' },
  })

const FilterName = line(1, 100).meta({ example: 'Offline clusters' })
const FilterContext = line(1, 50).meta({ description: 'The list that the filter applies to', example: 'clusters' })

export const SavedFilter = z
  .object({
    id: id('filter'),
    name: z.string().max(100).meta({ example: 'Offline clusters' }),
    context: z.string().max(50).meta({ example: 'clusters' }),
    filter: z.record(z.string(), z.unknown()).meta({ example: { status: 'Offline' } }),
    createdAt: timestamp,
  })
  .meta({ id: 'SavedFilter' })

export const SavedFilterCreation = z
  .strictObject({ name: FilterName, context: FilterContext, filter: FilterBody })
  .meta({ id: 'SavedFilterCreation' })

export type DashboardLayout = z.infer<typeof DashboardLayout>
export type DashboardLayoutUpdate = z.infer<typeof DashboardLayoutUpdate>
export type SavedFilter = z.infer<typeof SavedFilter>
export type SavedFilterCreation = z.infer<typeof SavedFilterCreation>

const common = { access: 'user', tags: ['Preferences'] } as const
const layoutPath = '/api/v1/users/me/dashboard-layout'
const filtersPath = '/api/v1/users/me/saved-filters'

export const getDashboardLayout = createRoute({
  ...common,
  method: 'get',
  path: layoutPath,
  summary: 'The dashboard layout of the caller',
  description: 'Send the `ETag` header in `If-Match` to replace only this version of the layout.',
  responses: {
    200: { description: 'The layout', content: json(DashboardLayout) },
    204: { description: 'No layout is saved; the portal uses its default' },
  },
  capabilities: ['table:read'],
})

export const updateDashboardLayout = createRoute({
  ...common,
  method: 'patch',
  path: layoutPath,
  summary: 'Save the dashboard layout of the caller',
  description:
    'The last write wins. With `If-Match` the layout is saved only if the stored version still matches. The `ETag` header identifies the saved version.',
  request: {
    headers: z.object({
      'if-match': z
        .string()
        .max(1000)
        .optional()
        .meta({ description: 'An `ETag` of GET, or `*` for any saved layout', example: '"Zm9vYmFy"' }),
    }),
    body: jsonBody(DashboardLayoutUpdate),
  },
  responses: { 204: { description: 'Saved' } },
  errors: ['precondition_failed'],
  capabilities: ['table:write', 'queue:events'],
})

export const listSavedFilters = createRoute({
  ...common,
  method: 'get',
  path: filtersPath,
  summary: 'The saved filters of the caller, newest first',
  responses: { 200: { description: 'Saved filters', content: json(listOf(SavedFilter, savedFilterLimit)) } },
  capabilities: ['table:read'],
})

export const createSavedFilter = createRoute({
  ...common,
  method: 'post',
  path: filtersPath,
  summary: 'Save a filter',
  description: 'Apply a filter with the context `clusters` by `GET /api/v1/clusters?filterId=`.',
  request: { body: jsonBody(SavedFilterCreation) },
  responses: { 201: { description: 'The saved filter', content: json(SavedFilter) } },
  errors: ['limit_reached'],
  capabilities: ['table:write', 'queue:events'],
})

export const deleteSavedFilter = createRoute({
  ...common,
  method: 'delete',
  path: `${filtersPath}/{id}`,
  summary: 'Remove a saved filter',
  request: { params: z.object({ id: pathId('filter') }) },
  responses: { 204: { description: 'Removed' } },
  errors: ['filter_not_found'],
  capabilities: ['table:write', 'queue:events'],
})
