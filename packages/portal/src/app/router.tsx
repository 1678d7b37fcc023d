import { createRouter } from '@tanstack/react-router'
import { NotFound, PageFailure } from '../shell/page-failure.tsx'
import { Loading } from '../ui/state.tsx'
import { routeTree } from './routes.tsx'

export const router = createRouter({
  routeTree,
  // A module may treat its paths with and without a last slash differently.
  trailingSlash: 'preserve',
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultPendingMs: 300,
  defaultPendingComponent: () => <Loading what="the page" />,
  defaultNotFoundComponent: NotFound,
  defaultErrorComponent: PageFailure,
})

// The router stores scroll positions on unload, which is not needed because the browser restores them.
addEventListener('pagehide', () => sessionStorage.clear())

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
