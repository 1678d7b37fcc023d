import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useMe } from '../../api/account.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { nameOf } from '@platform/contract/user-name'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { useDraft } from '../../ui/draft.ts'
import { PasswordField, TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { Loaded } from '../../ui/state.tsx'
import { showToast } from '../../ui/toast.tsx'
import { type Role, RolesField } from './roles.tsx'

interface CreateUserProps {
  onClose: () => void
  /** If set, the user becomes the first administrator of this organisation. */
  organisation?: Schemas['Organisation']
}

export function CreateUser({ onClose, organisation }: CreateUserProps) {
  const [roles, setRoles] = useDraft<Role[]>(`roles ${organisation?.id ?? ''}`, organisation ? ['OrgAdmin'] : [])
  const [wasSubmitted, setWasSubmitted] = useState(false)
  const queries = useQueryClient()
  const create = async ({ username = '', email = '', password = '' }: FormValues) => {
    setWasSubmitted(true)
    if (roles.length === 0) return false
    const target = organisation && { organisationId: organisation.id }
    const body = { username: username.trim(), email: email.trim(), password, roles, ...target }
    const user = await unwrap(api.POST('/api/v1/users', { body }))
    showToast(`${nameOf(user)} was created`)
    onClose()
    await queries.invalidateQueries({ queryKey: ['users'] })
    return true
  }
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={organisation ? `First administrator of ${organisation.name}` : 'Create user'}
      description={organisation && 'The user becomes OrgAdmin and can create further users.'}
    >
      <Form
        name={`user of ${organisation?.id ?? ''}`}
        submitLabel="Create user"
        onSubmit={create}
        actions={<CancelButton />}
      >
        <NameField />
        <EmailField />
        <NewPasswordField />
        {!organisation && (
          <RolesField
            chosen={roles}
            onChange={setRoles}
            problem={wasSubmitted && roles.length === 0 ? 'Choose at least one role.' : undefined}
          />
        )}
      </Form>
    </Dialog>
  )
}

type User = Schemas['UserProfile']

export function EditUser({ id, onClose }: { id: string; onClose: () => void }) {
  const query = useQuery({
    queryKey: ['users', 'one', id],
    queryFn: () => unwrap(api.GET('/api/v1/users/{id}', { params: { path: { id } } })),
    // Cached values could be outdated. The open form ignores later values, so a refetch has no use.
    refetchOnWindowFocus: false,
    gcTime: 0,
  })
  return (
    <Dialog isOpen onClose={onClose} title={query.data ? `Edit ${nameOf(query.data)}` : 'Edit user'}>
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
  // The values when the form was opened. Later changes by other users do not count as edits of this form.
  const [before] = useState(user)
  const [roles, setRoles] = useDraft('roles', before.roles.filter(isRole))
  const me = useMe()
  const queries = useQueryClient()
  const hasNoRoles = roles.length === 0
  const save = async ({ email = '', password = '' }: FormValues) => {
    if (hasNoRoles) return false
    // Only changed fields are sent, because other users may have changed the other fields.
    const body = {
      ...(email.trim() !== before.email && { email: email.trim() }),
      ...(roles.toSorted().join() !== before.roles.toSorted().join() && { roles }),
      ...(password !== '' && { password }),
    }
    if (Object.keys(body).length > 0) {
      await unwrap(api.PATCH('/api/v1/users/{id}', { params: { path: { id } }, body }))
      showToast(`${nameOf(user)} was changed`)
    }
    onClose()
    await queries.invalidateQueries({ queryKey: ['users'] })
    if (id === me.id) await queries.invalidateQueries({ queryKey: ['me'] })
    return true
  }
  return (
    <Form submitLabel="Save" onSubmit={save} actions={<CancelButton />}>
      <EmailField email={before.email} />
      <RolesField chosen={roles} onChange={setRoles} problem={hasNoRoles ? 'Choose at least one role.' : undefined} />
      {id === me.id ? <p>Change your own password under Account.</p> : <ResetPasswordField />}
      <p>
        Removed permissions end immediately for changes and within a minute for reads. New ones apply within 15 minutes,
        and immediately for API tokens.
      </p>
    </Form>
  )
}

const minPasswordLength = 8
const tooShort = 'Enter at least 8 characters.'

const NameField = () => (
  <TextField
    name="username"
    label="User name"
    hint="Used to sign in. Unique on the platform."
    maxLength={64}
    autoComplete="off"
    autoCapitalize="none"
    spellCheck={false}
    required
  />
)

const EmailField = ({ email }: { email?: string }) => (
  <TextField
    name="email"
    label="E-mail"
    defaultValue={email}
    inputMode="email"
    maxLength={254}
    autoComplete="off"
    required
  />
)

const NewPasswordField = () => (
  <PasswordField
    name="password"
    label="Password"
    hint="At least 8 characters, and no common password. The user can change it under Account."
    check={(password) => (password.length < minPasswordLength ? tooShort : undefined)}
    maxLength={1024}
    autoComplete="new-password"
  />
)

const ResetPasswordField = () => (
  <PasswordField
    name="password"
    label="New password"
    isOptional
    hint="Ends all sessions of the user and revokes the user’s API tokens."
    check={(password) => (password !== '' && password.length < minPasswordLength ? tooShort : undefined)}
    maxLength={1024}
    autoComplete="new-password"
  />
)
