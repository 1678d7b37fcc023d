import { SearchX } from 'lucide-react'
import { ButtonLink } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState } from '../../ui/state.tsx'

/** Instead of a job or a batch that is not there. */
export const NotFoundNotice = ({ what }: { what: 'job' | 'batch' }) => (
  <Page title={what === 'job' ? 'Job not found' : 'Batch not found'} trail={{ label: 'Jobs', to: '/jobs' }}>
    <EmptyState icon={SearchX} title={`There is no such ${what}`} action={<ButtonLink to="/jobs">All jobs</ButtonLink>}>
      Its time is over, its cluster was removed, or the link to it is wrong.
    </EmptyState>
  </Page>
)
