import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'
import { type Role, RolesField } from './roles.tsx'
import { EmailField, NameField, NewPasswordField } from './user-fields.tsx'

interface CreateUserProps {
  onClose: () => void
  /** Creates the first administrator of an organisation without users. */
  organisation?: Schemas['Organisation']
}

export function CreateUser({ onClose, organisation }: CreateUserProps) {
  const [roles, setRoles] = useState<Role[]>(organisation ? ['OrgAdmin'] : [])
  const [isTried, setIsTried] = useState(false)
  const queries = useQueryClient()
  const create = async ({ username = '', email = '', password = '' }: FormValues) => {
    setIsTried(true)
    if (roles.length === 0) return
    const place = organisation && { organisationId: organisation.id }
    const body = { username: username.trim(), email: email.trim(), password, roles, ...place }
    const user = await unwrap(api.POST('/api/v1/users', { body }))
    showToast(`${user.username} was created`)
    onClose()
    await queries.invalidateQueries({ queryKey: ['users'] })
  }
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={organisation ? `First administrator of ${organisation.name}` : 'Create user'}
      description={organisation && 'The user becomes OrgAdmin and can create further users.'}
    >
      <Form submitLabel="Create user" onSubmit={create} actions={<Button onClick={onClose}>Cancel</Button>}>
        <NameField />
        <EmailField />
        <NewPasswordField />
        {!organisation && (
          <RolesField
            chosen={roles}
            onChange={setRoles}
            problem={isTried && roles.length === 0 ? 'Choose at least one role.' : undefined}
          />
        )}
      </Form>
    </Dialog>
  )
}
