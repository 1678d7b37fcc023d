import { expect, test } from 'vitest'
import { boundaryViolations } from '../../scripts/boundaries.ts'
import { sources } from '../../scripts/source.ts'

const faultsOf = (path: string, text: string) => boundaryViolations([{ path, text }])

test('imports in this repository run one way', () => {
  expect(boundaryViolations(sources())).toEqual([])
})

test.for([
  ['packages/contract/src/x.ts', `import { fault } from '@platform/core/fault'`],
  ['packages/contract/src/x.ts', `import { readFile } from 'node:fs/promises'`],
  ['packages/contract/src/x.ts', `import { createDocument } from 'zod-openapi'`],
  ['packages/core/src/x.ts', `import { serve } from '@platform/http/serve'`],
  ['packages/core/src/db/x.ts', `import { x } from '../../../contract/src/x.ts'`],
  ['packages/core/src/x.ts', `const x = await import('@platform/local/main')`],
  ['packages/core/src/x.ts', `import { openApiDocument } from '@platform/contract/openapi'`],
  ['packages/http/src/x.ts', `export { x } from '@platform/local/main'`],
  ['packages/relay/src/x.ts', `import { type Claim } from '@platform/contract/relay'`],
  ['packages/relay/src/x.ts', `import type { Fault } from '@platform/core/fault'`],
  ['packages/relay/src/x.ts', `import { z } from 'zod'`],
  ['packages/cli/src/x.ts', `import { listClusters } from '@platform/contract/cluster'`],
  ['packages/cli/src/x.ts', `import { z } from 'zod'`],
  ['packages/modules/src/x.ts', `import { hello } from '@platform/hello/main'`],
  ['packages/local/src/x.ts', `import { serve } from '@platform/http/serve'`],
  ['functions/clusters.ts', `import { install } from '@platform/modules/install'`],
  ['infra/api.ts', `import { fault } from '@platform/core/fault'`],
] as const)('%s must not hold: %s', ([path, text]) => {
  expect(faultsOf(path, text)).toHaveLength(1)
})

test.for([
  ['packages/contract/src/x.ts', `import * as z from 'zod'`],
  ['packages/contract/src/openapi.ts', `import { createDocument } from 'zod-openapi'`],
  ['packages/contract/src/openapi/x.ts', `import type { ZodOpenApiObject } from 'zod-openapi'`],
  ['packages/core/src/x.ts', `import { errors } from '@platform/contract/errors'`],
  ['packages/http/src/x.ts', `import { Hono } from 'hono'`],
  ['packages/relay/src/x.ts', `import type { Claim } from '@platform/contract/relay'`],
  ['packages/cli/src/x.ts', `import createClient from 'openapi-fetch'`],
  ['packages/local/src/x.ts', `import { handler } from '../../../functions/clusters.ts'`],
  ['functions/clusters.ts', `import { serve } from '@platform/http/serve'`],
  ['functions/queue/updates.ts', `import { install } from '@platform/modules/install'`],
  ['infra/api.ts', `import { routes } from '@platform/contract/index'`],
  ['test/core/x.test.ts', `import { main } from '@platform/local/main'`],
] as const)('%s may hold: %s', ([path, text]) => {
  expect(faultsOf(path, text)).toEqual([])
})
