import * as z from 'zod'
import { listOf, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'
import { ModuleId, version } from './manifest.ts'

/** The catalog: modules that can be installed (section 2, D45). */

/** An entry of the catalog (section 2). */
export const CatalogItem = z
  .object({
    id: ModuleId,
    name: z.string().max(80).meta({ example: 'Hello World' }),
    version: version.meta({ description: 'The newest release, a verified one where there is any', example: '1.0.0' }),
    description: z.string().max(300),
    verified: z.boolean().meta({ description: 'Signed by a trusted key, over this very image (D46)' }),
    verifiedBy: z.string().max(100).optional().meta({ description: 'Name of that key' }),
    unverifiedReason: z.string().max(500).optional().meta({ description: 'Why it is not verified' }),
    installed: z.boolean(),
    installedVersion: version.optional(),
    updateAvailable: z.boolean().meta({ description: 'The release is newer than the installed one, by SemVer' }),
    catalogSource: z
      .string()
      .max(512)
      .meta({ description: 'Image repository', example: '127.0.0.1:8081/modules/hello' }),
  })
  .meta({ id: 'CatalogItem' })

export const CatalogScan = z
  .object({ scannedAt: timestamp.optional().meta({ description: 'When the sources were last looked at, until now' }) })
  .meta({ id: 'CatalogScan' })

export type CatalogItem = z.infer<typeof CatalogItem>

const flag = (description: string) => z.enum(['true', 'false']).optional().meta({ description })

export const listCatalog = endpoint({
  method: 'GET',
  path: '/api/v1/modules/catalog',
  access: 'modules:read',
  tag: 'Modules',
  summary: 'Modules that can be installed',
  description: 'As the last scan of the sources found them; asking reads no registry (D45).',
  request: {
    query: z.object({
      installed: flag('true: only installed ones; false: only others'),
      verified: flag('true: only verified ones; false: only others'),
      search: z
        .string()
        .max(200)
        .optional()
        .meta({ description: 'Words that name and description hold, in any order' }),
    }),
  },
  responses: {
    200: {
      description: 'The catalog',
      schema: listOf(CatalogItem, 10_000).extend({
        totalCount: z.int32().min(0),
        scannedAt: timestamp.optional().meta({ description: 'When the sources were last looked at' }),
        problems: z.array(z.string().max(500)).max(50).meta({ description: 'What kept a source from being read' }),
      }),
    },
  },
  uses: ['table:read'],
})

export const scanCatalog = endpoint({
  method: 'POST',
  path: '/api/v1/modules/catalog/scan',
  access: 'modules:install',
  tag: 'Modules',
  summary: 'Look at the sources of the catalog now',
  description: 'They are looked at every few minutes anyway.',
  responses: {
    202: { description: 'Asked for; scannedAt of the catalog changes when it is done', schema: CatalogScan },
  },
  uses: ['table:read', 'table:write', 'queue:updates', 'queue:events'],
})
