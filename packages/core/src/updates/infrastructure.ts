import { capabilitiesOf } from '@platform/contract/endpoint'
import { routes } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { tasks } from '@platform/contract/task'
import { tableIndexes, ttlAttribute } from '../db/schema.ts'
import { sha256 } from '../id.ts'

/**
 * What a release needs around its functions: routes, queues, clocks, grants and indexes. An update replaces the functions and
 * nothing else, so that a release of another revision has to be deployed. 64 hex digits.
 */
export const infrastructureRevision = (): string =>
  sha256(
    JSON.stringify({
      routes: routes.map((route) => [
        route.function,
        route.endpoint.method,
        route.endpoint.path,
        capabilitiesOf(route.endpoint),
      ]),
      passages: modulePaths,
      fallback,
      tasks,
      tableIndexes,
      ttlAttribute,
    }),
  )
