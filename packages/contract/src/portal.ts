import * as z from 'zod'
import { listOf } from './common.ts'
import { endpoint } from './endpoint.ts'
import { slotIds } from './manifest.ts'

/** An entry of the portal's navigation: built in, or a module's. */
export const NavigationEntry = z
  .object({
    slotId: z.enum(slotIds),
    id: z.string().max(64).meta({ example: 'clusters' }),
    label: z.string().max(40).meta({ example: 'Clusters' }),
    icon: z.string().max(64).meta({ description: 'A Lucide icon name', example: 'server' }),
    route: z.string().max(256).meta({ example: '/clusters' }),
    order: z.int32().min(0).max(10_000).meta({ description: 'Lower is higher', example: 10 }),
    source: z.string().max(60).meta({ description: '`platform`, or `module:<id>`', example: 'platform' }),
  })
  .meta({ id: 'NavigationEntry' })
export type NavigationEntry = z.infer<typeof NavigationEntry>

export const getNavigation = endpoint({
  method: 'GET',
  path: '/api/v1/portal/navigation',
  access: 'user',
  tag: 'Modules',
  summary: 'The portal’s navigation, in order',
  description: 'Built-in entries that the caller may use, and those of running modules.',
  responses: { 200: { description: 'The entries', schema: listOf(NavigationEntry, 2000) } },
  uses: ['table:read'],
})
