import { Building2, Plus } from 'lucide-react'
import { useState } from 'react'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { EmptyState } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { pageRows } from '../../ui/use-pages.ts'
import type { VirtualColumn } from '../../ui/virtual-table.tsx'
import { CreateUser } from '../users/create-user.tsx'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { CreateOrganisation } from './create-organisation.tsx'

type Organisation = Schemas['Organisation']

export const OrganisationsPage = () => (
  <RequirePermission permission="platform:admin" title="Organisations">
    <Administration />
  </RequirePermission>
)

function Administration() {
  const [isNew, setIsNew] = useState(false)
  const [seeded, setSeeded] = useState<Organisation>()
  const create = (
    <Button look="primary" icon={Plus} onClick={() => setIsNew(true)}>
      Create organisation
    </Button>
  )
  return (
    <Page title="Organisations" lead="Each organisation sees only its own clusters, jobs and users." actions={create}>
      <PagedTable
        label="Organisations"
        queryKey={['organisations', 'list']}
        fetchPage={(page, signal) =>
          unwrap(api.GET('/api/v1/platform/organisations', { params: { query: { page, pageSize: pageRows } }, signal }))
        }
        columns={columns(setSeeded)}
        rowKey={({ id }) => id}
        summary={(total) => (total === 1 ? '1 organisation' : `${total} organisations`)}
        empty={
          <EmptyState icon={Building2} title="No organisations">
            Create one for each tenant of the platform.
          </EmptyState>
        }
      />
      {isNew && <CreateOrganisation onClose={() => setIsNew(false)} onCreated={setSeeded} />}
      {seeded && <CreateUser organisation={seeded} onClose={() => setSeeded(undefined)} />}
    </Page>
  )
}

const columns = (onSeed: (organisation: Organisation) => void): VirtualColumn<Organisation>[] => [
  {
    title: 'Name',
    width: 'minmax(8rem, 3fr)',
    narrow: 'lead',
    cell: ({ name, isPlatform }) => (
      <>
        {name} {isPlatform && <Badge tone="good">Platform</Badge>}
      </>
    ),
  },
  { title: 'Id', width: 'minmax(8rem, 3fr)', cell: ({ id }) => <code>{id}</code> },
  { title: 'Created', width: '8rem', narrow: 'hidden', cell: ({ createdAt }) => <Time at={createdAt} /> },
  {
    title: '',
    width: '13rem',
    isEnd: true,
    narrow: 'mark',
    cell: (organisation) =>
      !organisation.isPlatform && (
        <Button onClick={() => onSeed(organisation)} aria-label={`Add first administrator of ${organisation.name}`}>
          Add first administrator
        </Button>
      ),
  },
]
