import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useMe } from '../../api/account.ts'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { Loaded } from '../../ui/state.tsx'
import { showToast } from '../../ui/toast.tsx'
import { type Role, RolesField } from './roles.tsx'
import { EmailField, ResetPasswordField } from './user-fields.tsx'

type User = Schemas['UserProfile']

interface EditUserProps {
  id: string
  onClose: () => void
}

export function EditUser({ id, onClose }: EditUserProps) {
  const query = useQuery({
    queryKey: ['users', 'one', id],
    queryFn: () => unwrap(api.GET('/api/v1/users/{id}', { params: { path: { id } } })),
    // Never refetches during an edit and never shows outdated values.
    refetchOnWindowFocus: false,
    gcTime: 0,
  })
  return (
    <Dialog isOpen onClose={onClose} title={query.data ? `Edit ${query.data.username}` : 'Edit user'}>
      <Loaded query={query} what="the user">
        {(user) =>
          user.authProvider === 'local' ? (
            <EditForm user={user} onClose={onClose} />
          ) : (
            <p>The identity provider manages e-mail, roles and password of this account.</p>
          )
        }
      </Loaded>
    </Dialog>
  )
}

const isRole = (name: string): name is Role =>
  ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin', 'Operator', 'Viewer', 'Auditor'].includes(name)

function EditForm({ user, onClose }: { user: User; onClose: () => void }) {
  const { id } = user
  // The values when the form was opened.
  const [before] = useState(user)
  const [roles, setRoles] = useState<Role[]>(before.roles.filter(isRole))
  const me = useMe()
  const queries = useQueryClient()
  const isEmpty = roles.length === 0
  const save = async ({ email = '', password = '' }: FormValues) => {
    if (isEmpty) return
    // Sends changed fields only, because other users may change the rest.
    const body = {
      ...(email.trim() !== before.email && { email: email.trim() }),
      ...(roles.toSorted().join() !== before.roles.toSorted().join() && { roles }),
      ...(password !== '' && { password }),
    }
    if (Object.keys(body).length > 0) {
      await unwrap(api.PATCH('/api/v1/users/{id}', { params: { path: { id } }, body }))
      showToast(`${user.username} was changed`)
    }
    onClose()
    await queries.invalidateQueries({ queryKey: ['users'] })
    if (id === me.id) await queries.invalidateQueries({ queryKey: ['me'] })
  }
  return (
    <Form submitLabel="Save" onSubmit={save} actions={<Button onClick={onClose}>Cancel</Button>}>
      <EmailField email={before.email} />
      <RolesField chosen={roles} onChange={setRoles} problem={isEmpty ? 'Choose at least one role.' : undefined} />
      {id === me.id ? <p>Change your own password under Account.</p> : <ResetPasswordField />}
      <p>Role changes apply within 15 minutes, and immediately for API tokens.</p>
    </Form>
  )
}
