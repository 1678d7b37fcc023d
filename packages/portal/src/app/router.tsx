import { createRouter } from '@tanstack/react-router'
import { removeScrollPositions } from '../lib/draft-storage.ts'
import { NotFound, PageFailure } from '../shell/page-failure.tsx'
import { mayLeave, mustAskBeforeUnload } from '../ui/leave.tsx'
import { Loading } from '../ui/state.tsx'
import { routeTree } from './routes.tsx'

export const router = createRouter({
  routeTree,
  // A module may treat its paths with and without a trailing slash differently.
  trailingSlash: 'preserve',
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultPendingMs: 300,
  defaultPendingComponent: () => <Loading what="the page" />,
  defaultNotFoundComponent: NotFound,
  defaultErrorComponent: PageFailure,
})

addEventListener('pagehide', removeScrollPositions)

router.history.block({
  blockerFn: async ({ currentLocation: from, nextLocation: to }) =>
    (from.pathname !== to.pathname || from.search !== to.search) && !(await mayLeave(undefined, true)),
  enableBeforeUnload: mustAskBeforeUnload,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
