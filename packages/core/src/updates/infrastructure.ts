import { capabilitiesOf } from '@platform/contract/endpoint'
import { routes } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { tasks } from '@platform/contract/task'
import { layoutVersion, tableIndexes, ttlAttribute } from '../db/schema.ts'
import { sha256 } from '../id.ts'

/**
 * Returns a SHA-256 digest of the routes, queues, schedules, grants, indexes and layout that this release requires.
 * Updates replace only functions, so a release with another digest must be deployed.
 */
export const infrastructureRevision = (): string =>
  sha256(
    JSON.stringify({
      routes: routes.map((route) => [
        route.function,
        route.method,
        route.endpoint.path,
        capabilitiesOf(route.endpoint),
      ]),
      passages: modulePaths,
      fallback,
      tasks,
      tableIndexes,
      ttlAttribute,
      layoutVersion,
    }),
  )
