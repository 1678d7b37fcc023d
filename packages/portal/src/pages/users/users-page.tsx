import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Gauge, Settings, UserPlus, Users } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission, useMe } from '../../api/account.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { isolate, nameOf } from '@platform/contract/user-name'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { EmptyState } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { pageSize } from '../../ui/use-pages.ts'
import type { VirtualColumn } from '../../ui/virtual-table.tsx'
import { UsageDialog } from './quotas.tsx'
import { OrganisationSettings } from './organisation-settings.tsx'
import { UserActions } from './user-actions.tsx'
import { CreateUser, EditUser } from './user-dialogs.tsx'

type User = Schemas['UserProfile']

export const UsersPage = () => (
  <RequirePermission permission="users:admin" title="Users">
    <UserList />
  </RequirePermission>
)

function UserList() {
  const [isCreating, setIsCreating] = useState(false)
  const [isShowingSettings, setIsShowingSettings] = useState(false)
  const [isShowingUsage, setIsShowingUsage] = useState(false)
  const isPlatformAdmin = useHasPermission('platform:admin')
  const { user } = useSearch({ from: '/signed-in/settings/users' })
  const navigate = useNavigate()
  const edit = (id?: string) => void navigate({ to: '/settings/users', search: id === undefined ? {} : { user: id } })
  return (
    <Page
      title="Users"
      lead={
        <>
          Users of your organisation and their roles.
          {isPlatformAdmin && (
            <>
              {' '}
              Add the first user of another organisation at <Link to="/settings/organisations">Organisations</Link>.
            </>
          )}
        </>
      }
      actions={
        <>
          <Button icon={Gauge} onClick={() => setIsShowingUsage(true)}>
            Usage
          </Button>
          <Button icon={Settings} onClick={() => setIsShowingSettings(true)}>
            Settings
          </Button>
          <Button variant="primary" icon={UserPlus} onClick={() => setIsCreating(true)}>
            Create user
          </Button>
        </>
      }
    >
      <UserTable onEdit={edit} />
      {isShowingSettings && <OrganisationSettings onClose={() => setIsShowingSettings(false)} />}
      {isShowingUsage && <UsageDialog onClose={() => setIsShowingUsage(false)} />}
      {isCreating && <CreateUser onClose={() => setIsCreating(false)} />}
      {user !== undefined && <EditUser id={user} onClose={() => edit()} />}
    </Page>
  )
}

function UserTable({ onEdit }: { onEdit: (id: string) => void }) {
  const me = useMe()
  const columns: VirtualColumn<User>[] = [
    {
      title: 'User name',
      width: 'minmax(8rem, 2fr)',
      narrow: 'start',
      cell: (user) => (
        <>
          {nameOf(user)} {user.id === me.id && <Badge>You</Badge>}
        </>
      ),
    },
    { title: 'E-mail', width: 'minmax(8rem, 3fr)', cell: ({ email }) => isolate(email) },
    { title: 'Roles', width: 'minmax(8rem, 2fr)', cell: ({ roles }) => roles.join(', ') },
    {
      title: 'Account',
      width: '9rem',
      narrow: 'hidden',
      cell: ({ authProvider, suspendedAt }) =>
        suspendedAt !== undefined ? (
          <Badge variant="warn">Suspended</Badge>
        ) : authProvider === 'local' ? (
          'Local'
        ) : (
          'Identity provider'
        ),
    },
    { title: 'Created', width: '8rem', narrow: 'hidden', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      title: '',
      width: '2.5rem',
      narrow: 'end',
      cell: (user) => <UserActions user={user} onEdit={() => onEdit(user.id)} />,
    },
  ]
  return (
    <PagedTable
      label="Users"
      queryKey={['users', 'list']}
      fetchPage={(page, signal) => unwrap(api.GET('/api/v1/users', { params: { query: { page, pageSize } }, signal }))}
      columns={columns}
      rowKey={({ id }) => id}
      summary={(total) => (total === 1 ? '1 user' : `${total} users`)}
      empty={
        <EmptyState icon={Users} title="No users">
          Create one for each person who works with the platform.
        </EmptyState>
      }
    />
  )
}
