import { lazyRouteComponent } from '@tanstack/react-router'
import { ApiError } from '../api/api-error.ts'

/**
 * A page that is loaded when it is first needed. Where its file does not come, that is told as any call that gets no answer: the
 * router would load the portal anew, which a browser without a platform answers with a page of its own, and all that was typed
 * is lost. A tab of another version sees to itself (`reloadOnceWhenOutdated`).
 */
export const lazyPage: typeof lazyRouteComponent = (load, name) =>
  lazyRouteComponent(
    () =>
      load().catch((cause: unknown) => {
        throw ApiError.unreachable(cause)
      }),
    name,
  )
