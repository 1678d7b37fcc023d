import { createRouter } from '@tanstack/react-router'
import { Loading } from '../ui/state.tsx'
import { NotFound } from '../shell/not-found.tsx'
import { PageFailure } from '../shell/page-failure.tsx'
import { routeTree } from './routes.tsx'

export const router = createRouter({
  routeTree,
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultPendingMs: 300,
  defaultPendingComponent: () => <Loading what="the page" />,
  defaultNotFoundComponent: NotFound,
  defaultErrorComponent: PageFailure,
})

// The router stores scroll positions on unload; the browser restores them anyway.
addEventListener('pagehide', () => sessionStorage.clear())

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
