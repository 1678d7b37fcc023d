import { lazyRouteComponent } from '@tanstack/react-router'
import { ApiError } from '../api/api-error.ts'

/**
 * A page that loads on first use. A failed load is an error like an unanswered call: the router would reload the
 * portal, which loses all input and shows a browser error while the platform is down. `reloadOnceAfterUpdate` handles
 * outdated tabs.
 */
export const lazyPage: typeof lazyRouteComponent = (load, name) =>
  lazyRouteComponent(
    () =>
      load().catch((cause: unknown) => {
        throw ApiError.unreachable(cause)
      }),
    name,
  )
