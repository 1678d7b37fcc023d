import { createRouter } from '@tanstack/react-router'
import { Loading } from '../ui/state.tsx'
import { NotFound } from '../shell/not-found.tsx'
import { PageFailure } from '../shell/page-failure.tsx'
import { routeTree } from './routes.tsx'

/** Addresses and what they show. */
export const router = createRouter({
  routeTree,
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultPendingMs: 300,
  defaultPendingComponent: () => <Loading what="the page" />,
  defaultNotFoundComponent: NotFound,
  defaultErrorComponent: PageFailure,
})

// When a page is left the router would keep where it was scrolled to: the portal keeps nothing there, and the browser knows, too.
addEventListener('pagehide', () => sessionStorage.clear())

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
