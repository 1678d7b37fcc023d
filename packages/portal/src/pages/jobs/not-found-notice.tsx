import { SearchX } from 'lucide-react'
import { ButtonLink } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState } from '../../ui/state.tsx'

export const NotFoundNotice = ({ what }: { what: 'job' | 'batch' }) => (
  <Page title={what === 'job' ? 'Job not found' : 'Batch not found'} parent={{ label: 'Jobs', to: '/jobs' }}>
    <EmptyState
      icon={SearchX}
      title={`This ${what} does not exist`}
      action={<ButtonLink to="/jobs">All jobs</ButtonLink>}
    >
      It has expired, its cluster was removed, or the link is wrong.
    </EmptyState>
  </Page>
)
