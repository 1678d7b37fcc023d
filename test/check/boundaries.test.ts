import { expect, test } from 'vitest'
import { boundaryViolations } from '../../scripts/boundaries.ts'
import { sources } from '../../scripts/source.ts'

const faultsOf = (path: string, text: string) => boundaryViolations([{ path, text }])

test('imports in this repository run one way', () => {
  expect(boundaryViolations(sources())).toEqual([])
})

test.for([
  ['packages/contract/src/x.ts', `import { fault } from '@platform/core/error'`],
  ['packages/contract/src/x.ts', `import { readFile } from 'node:fs/promises'`],
  ['packages/contract/src/x.ts', `import { createDocument } from 'zod-openapi'`],
  ['packages/core/src/x.ts', `import { serve } from '@platform/http/serve'`],
  ['packages/core/src/db/x.ts', `import { x } from '../../../contract/src/x.ts'`],
  ['packages/core/src/x.ts', `const x = await import('@platform/local/main')`],
  ['packages/core/src/x.ts', `import { openApiDocument } from '@platform/contract/openapi'`],
  ['packages/http/src/x.ts', `export { x } from '@platform/local/main'`],
  ['packages/relay/src/x.ts', `import { type Claim } from '@platform/contract/relay'`],
  ['packages/relay/src/x.ts', `import type { Fault } from '@platform/core/error'`],
  ['packages/relay/src/x.ts', `import { z } from 'zod'`],
  ['packages/cli/src/x.ts', `import { listClusters } from '@platform/contract/cluster'`],
  ['packages/cli/src/x.ts', `import { z } from 'zod'`],
  ['packages/cli/src/x.ts', `import { paths } from '@platform/contract/openapi-types'`],
  ['packages/portal/src/x.tsx', `import { getMe } from '@platform/contract/auth'`],
  ['packages/portal/src/x.tsx', `import document from '@platform/contract/openapi.json'`],
  ['packages/portal/src/x.tsx', `import { now } from '@platform/core/clock'`],
  ['packages/portal/src/x.tsx', `import { join } from 'node:path'`],
  ['packages/portal/src/x.tsx', `import { portalPaths } from '../../contract/src/portal-paths.ts'`],
  ['packages/http/src/x.ts', `import { router } from '@platform/portal/app/router'`],
  ['packages/oci/src/x.ts', `import { config } from '@platform/core/config'`],
  ['packages/oci/src/x.ts', `import { errors } from '@platform/contract/errors'`],
  ['packages/oci/src/x.ts', `import semver from 'semver'`],
  ['packages/oci/src/x.ts', `import { x } from 'zod-openapi'`],
  ['packages/worker/src/x.ts', `import { hello } from '@platform/hello/main'`],
  ['packages/sdk/src/x.ts', `import { port } from '../../worker/src/runtimes/port.ts'`],
  ['packages/sdk/src/deep/x.ts', `import { port } from '@platform/worker/runtimes/port'`],
  ['packages/sdk/src/x.ts', `import { errors } from '@platform/contract/errors'`],
  ['packages/sdk/src/x.ts', `import { digestOf } from '@platform/oci/digest'`],
  ['packages/sdk/src/x.ts', `import { z } from 'zod'`],
  ['packages/hello/src/x.ts', `import { port } from '@platform/worker/runtimes/port'`],
  ['packages/hello/src/x.ts', `import { errors } from '@platform/contract/errors'`],
  ['packages/hello/src/x.ts', `import { defineModule } from '../../sdk/src/index.ts'`],
  ['packages/core/src/x.ts', `import { defineModule } from '@platform/modules'`],
  ['packages/http/src/x.ts', `import { digestOf } from '@platform/oci/digest'`],
  ['functions/modules.ts', `import { defineModule } from '@platform/modules'`],
  ['packages/local/src/x.ts', `import { serve } from '@platform/http/serve'`],
  ['functions/clusters.ts', `import { install } from '@platform/worker/modules/install'`],
  ['infra/api.ts', `import { fault } from '../packages/core/src/error.ts'`],
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
  ['packages/cli/src/x.ts', `import { registryClient } from '@platform/oci/client'`],
  ['packages/cli/src/x.ts', `import { ModuleManifest } from '@platform/contract/manifest'`],
  ['packages/cli/src/x.ts', `import { checkManifest } from '@platform/core/modules/check-manifest'`],
  ['packages/cli/src/x.ts', `import type { paths } from '@platform/contract/openapi-types'`],
  ['packages/portal/src/api/x.ts', `import type { paths } from '@platform/contract/openapi-types'`],
  ['packages/portal/src/x.tsx', `import { openedPage } from '@platform/contract/portal-paths'`],
  ['packages/portal/src/x.tsx', `import { useQuery } from '@tanstack/react-query'`],
  ['packages/oci/src/x.ts', `import { extract } from 'tar-stream'`],
  ['packages/oci/src/signature/x.ts', `import { createVerify } from 'node:crypto'`],
  ['packages/core/src/x.ts', `import { parseReference } from '@platform/oci/reference'`],
  ['packages/worker/src/runtimes/x.ts', `import { moduleId } from '@platform/modules/definition'`],
  ['packages/worker/src/modules/x.ts', `import { readImage } from '@platform/oci/image'`],
  ['packages/sdk/src/x.ts', `import type { EventName } from '@platform/contract/event'`],
  ['packages/sdk/src/x.ts', `import { Hono } from 'hono'`],
  ['packages/sdk/src/x.ts', `import { HTTPException } from 'hono/http-exception'`],
  ['packages/hello/src/main.ts', `import { defineModule } from '@platform/modules'`],
  ['functions/modules.ts', `import { parseReference } from '@platform/oci/reference'`],
  ['packages/local/src/x.ts', `import { handler } from '../../../functions/clusters.ts'`],
  ['functions/clusters.ts', `import { serve } from '@platform/http/serve'`],
  ['functions/queue/updates.ts', `import { install } from '@platform/worker/modules/install'`],
  ['infra/api.ts', `import { routes } from '../packages/contract/src/index.ts'`],
  ['infra/storage.ts', `import { ttlAttribute } from '../packages/core/src/db/schema.ts'`],
  ['test/core/x.test.ts', `import { main } from '@platform/local/main'`],
] as const)('%s may hold: %s', ([path, text]) => {
  expect(faultsOf(path, text)).toEqual([])
})
