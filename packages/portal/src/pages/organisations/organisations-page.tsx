import { useQueryClient } from '@tanstack/react-query'
import { Building2, Ellipsis, Gauge, Plus, UserPlus } from 'lucide-react'
import { useState } from 'react'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Page } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { EmptyState } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { showToast } from '../../ui/toast.tsx'
import { pageSize } from '../../ui/use-pages.ts'
import type { VirtualColumn } from '../../ui/virtual-table.tsx'
import { CreateUser } from '../users/user-dialogs.tsx'
import { EditQuotas } from '../users/quotas.tsx'

type Organisation = Schemas['Organisation']

export const OrganisationsPage = () => (
  <RequirePermission permission="platform:admin" title="Organisations">
    <OrganisationList />
  </RequirePermission>
)

function OrganisationList() {
  const [isCreating, setIsCreating] = useState(false)
  const [newTenant, setNewTenant] = useState<Organisation>()
  const [edited, setEdited] = useState<Organisation>()
  const create = (
    <Button variant="primary" icon={Plus} onClick={() => setIsCreating(true)}>
      Create organisation
    </Button>
  )
  return (
    <Page title="Organisations" lead="Each organisation sees only its own clusters, jobs and users." actions={create}>
      <PagedTable
        label="Organisations"
        queryKey={['organisations', 'list']}
        fetchPage={(page, signal) =>
          unwrap(api.GET('/api/v1/platform/organisations', { params: { query: { page, pageSize } }, signal }))
        }
        columns={columnsOf(setNewTenant, setEdited)}
        rowKey={({ id }) => id}
        summary={(total) => (total === 1 ? '1 organisation' : `${total} organisations`)}
        empty={
          <EmptyState icon={Building2} title="No organisations">
            Create one for each tenant of the platform.
          </EmptyState>
        }
      />
      {isCreating && <CreateOrganisation onClose={() => setIsCreating(false)} onCreated={setNewTenant} />}
      {edited && <EditQuotas organisation={edited} onClose={() => setEdited(undefined)} />}
      {newTenant && <CreateUser organisation={newTenant} onClose={() => setNewTenant(undefined)} />}
    </Page>
  )
}

const columnsOf = (
  onAddAdministrator: (organisation: Organisation) => void,
  onEditQuotas: (organisation: Organisation) => void,
): VirtualColumn<Organisation>[] => [
  {
    title: 'Name',
    width: 'minmax(8rem, 3fr)',
    narrow: 'start',
    cell: ({ name, isPlatform }) => (
      <>
        {name} {isPlatform && <Badge variant="good">Platform</Badge>}
      </>
    ),
  },
  { title: 'Id', width: 'minmax(8rem, 3fr)', cell: ({ id }) => <code>{id}</code> },
  { title: 'Created', width: '8rem', narrow: 'hidden', cell: ({ createdAt }) => <Time at={createdAt} /> },
  {
    title: '',
    width: '2.5rem',
    narrow: 'end',
    cell: (organisation) => (
      <Menu
        trigger={<IconButton label={`Actions for ${organisation.name}`} icon={Ellipsis} />}
        actions={[
          { label: 'Quotas', icon: Gauge, onSelect: () => onEditQuotas(organisation) },
          {
            label: 'Add first administrator',
            icon: UserPlus,
            onSelect: () => onAddAdministrator(organisation),
            isDisabled: organisation.isPlatform,
          },
        ]}
      />
    ),
  },
]

interface CreateOrganisationProps {
  onClose: () => void
  onCreated: (organisation: Schemas['Organisation']) => void
}

export function CreateOrganisation({ onClose, onCreated }: CreateOrganisationProps) {
  const queries = useQueryClient()
  const create = async ({ name = '' }: FormValues) => {
    const organisation = await unwrap(api.POST('/api/v1/platform/organisations', { body: { name: name.trim() } }))
    showToast(`${organisation.name} was created`)
    onClose()
    onCreated(organisation)
    await queries.invalidateQueries({ queryKey: ['organisations'] })
  }
  return (
    <Dialog isOpen onClose={onClose} title="Create organisation" description="Next, add its first administrator.">
      <Form submitLabel="Create organisation" onSubmit={create} actions={<CancelButton />}>
        <TextField name="name" label="Name" hint="Unique on the platform." maxLength={100} required />
      </Form>
    </Dialog>
  )
}
