import { CSPProvider } from '@base-ui/react/csp-provider'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { meQuery } from './api/account.ts'
import { queries } from './api/query.ts'
import { onSignedOut } from './api/session.ts'
import { followOtherTabs, forgetUser } from './api/sign-in.ts'
import { reloadOnceAfterUpdate } from './app/outdated.ts'
import { router } from './app/router.tsx'
import { applyStoredTheme } from './lib/theme.ts'
import './style/base.css'

applyStoredTheme()
reloadOnceAfterUpdate()
followOtherTabs()
onSignedOut(() => {
  const { href, pathname } = router.state.location
  // A user who was not signed in has no session that could end.
  if (queries.getQueryData(meQuery.queryKey) === undefined || pathname === '/sign-in') return
  // The data is removed after navigation, because the current page still needs it.
  void router.navigate({ to: '/sign-in', search: { returnTo: href } }).then(forgetUser)
})

createRoot(document.getElementById('portal')!).render(
  <StrictMode>
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
)
