import { CSPProvider } from '@base-ui/react/csp-provider'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queries } from './api/query.ts'
import { onSessionEnd } from './api/session.ts'
import { followOtherTabs, forgetUser } from './api/sign-in.ts'
import { reloadOnceAfterUpdate } from './app/outdated.ts'
import { router } from './app/router.tsx'
import { applyStoredTheme } from './lib/theme.ts'
import { recoverSession } from './pages/sign-in/session-end.tsx'
import './style/base.css'

applyStoredTheme()
reloadOnceAfterUpdate()
followOtherTabs()
onSessionEnd(() => {
  const { href } = router.state.location
  // The data is removed after navigation, because the current page still needs it.
  return recoverSession(href, () => {
    void router.navigate({ to: '/sign-in', search: { returnTo: href } }).then(forgetUser)
  })
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
