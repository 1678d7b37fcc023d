import { Compass } from 'lucide-react'
import { ButtonLink } from '../ui/button.tsx'
import { Page } from '../ui/page.tsx'
import { EmptyState } from '../ui/state.tsx'

/** For addresses that lead nowhere. */
export const NotFound = () => (
  <Page title="Page not found">
    <EmptyState
      icon={Compass}
      title="There is nothing at this address"
      action={<ButtonLink to="/dashboard">Go to the dashboard</ButtonLink>}
    >
      The link may be old, or what it led to was removed.
    </EmptyState>
  </Page>
)
