import * as z from 'zod'
import { listOf, timestamp } from './common.ts'
import { createRoute, json } from './endpoint.ts'
import { EventPattern, ModuleId, version } from './manifest.ts'

/** The release of a module that the catalog offers, with the installed version. */
export const CatalogItem = z
  .object({
    id: ModuleId,
    name: z.string().max(80).meta({ example: 'Hello World' }),
    version: version.meta({
      description: 'The newest verified release, or the newest release if none is verified',
      example: '1.0.0',
    }),
    description: z.string().max(300),
    events: z.array(EventPattern).max(50).meta({ description: 'The event types that the manifest declares' }),
    verified: z.boolean().meta({ description: 'Whether a trusted key has signed this image' }),
    verifiedBy: z.string().max(100).optional().meta({ description: 'Name of the key that signed it' }),
    unverifiedReason: z.string().max(500).optional().meta({ description: 'Why it is not verified' }),
    installed: z.boolean(),
    installedVersion: version.optional(),
    updateAvailable: z
      .boolean()
      .meta({ description: 'Whether the release is newer than the installed one, by SemVer' }),
    catalogSource: z
      .string()
      .max(512)
      .meta({ description: 'Image repository', example: '127.0.0.1:8081/modules/hello' }),
  })
  .meta({ id: 'CatalogItem' })

export const CatalogScan = z
  .object({ scannedAt: timestamp.optional().meta({ description: 'Time of the last complete scan of the sources' }) })
  .meta({ id: 'CatalogScan' })

export type CatalogItem = z.infer<typeof CatalogItem>

const flag = (description: string) => z.enum(['true', 'false']).optional().meta({ description })

export const listCatalog = createRoute({
  method: 'get',
  path: '/api/v1/modules/catalog',
  access: 'modules:read',
  tags: ['Modules'],
  summary: 'Modules that can be installed',
  description: 'The result of the last scan of the sources. This request reads no registry.',
  request: {
    query: z.strictObject({
      installed: flag('true: only installed ones; false: only others'),
      verified: flag('true: only verified ones; false: only others'),
      search: z
        .string()
        .max(200)
        .optional()
        .meta({ description: 'Words that the name or description must contain, in any order' }),
    }),
  },
  responses: {
    200: {
      description: 'The catalog',
      content: json(
        listOf(CatalogItem, 10_000).extend({
          totalCount: z.int32().min(0),
          scannedAt: timestamp.optional().meta({ description: 'Time of the last scan of the sources' }),
          problems: z
            .array(z.string().max(500))
            .max(50)
            .meta({ description: 'Errors of sources that could not be read' }),
        }),
      ),
    },
  },
  capabilities: ['table:read'],
})

export const scanCatalog = createRoute({
  method: 'post',
  path: '/api/v1/modules/catalog/scan',
  access: 'modules:install',
  tags: ['Modules'],
  summary: 'Scan the sources of the catalog now',
  description: 'The platform also scans them every few minutes.',
  responses: {
    202: {
      description: 'Accepted; scannedAt of the catalog changes when the scan is complete',
      content: json(CatalogScan),
    },
  },
  capabilities: ['table:read', 'table:write', 'queue:installs', 'queue:events'],
})
