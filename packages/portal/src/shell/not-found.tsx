import { Compass } from 'lucide-react'
import { ButtonLink } from '../ui/button.tsx'
import { Page } from '../ui/page.tsx'
import { EmptyState } from '../ui/state.tsx'

export const NotFound = () => (
  <Page title="Page not found">
    <EmptyState
      icon={Compass}
      title="This page does not exist"
      action={<ButtonLink to="/dashboard">Go to the dashboard</ButtonLink>}
    >
      The link is outdated, or the page was removed.
    </EmptyState>
  </Page>
)
