import { useQueryClient } from '@tanstack/react-query'
import { Ellipsis, KeyRound, LogOut, Pencil, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { api, type Schemas, expectNoBody } from '../../api/client.ts'
import { nameOf } from '@platform/contract/user-name'
import { IconButton } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Menu } from '../../ui/menu.tsx'
import { showToast } from '../../ui/toast.tsx'

type User = Schemas['UserProfile']

interface Action {
  label: string
  title: (username: string) => string
  description: string
  doneText: (username: string) => string
  send: (id: string) => Promise<unknown>
}

const params = (id: string) => ({ params: { path: { id } } })

const actions = {
  endSessions: {
    label: 'End sessions',
    title: (username) => `End all sessions of ${username}?`,
    description: 'The user can change nothing from now on and is signed out within a minute. API tokens stay valid.',
    doneText: (username) => `The sessions of ${username} have ended`,
    send: (id) => expectNoBody(api.DELETE('/api/v1/users/{id}/sessions', params(id))),
  },
  revokeTokens: {
    label: 'Revoke API tokens',
    title: (username) => `Revoke all API tokens of ${username}?`,
    description: 'Programs that use them lose access immediately.',
    doneText: (username) => `The API tokens of ${username} are revoked`,
    send: (id) => expectNoBody(api.DELETE('/api/v1/users/{id}/tokens', params(id))),
  },
  remove: {
    label: 'Remove',
    title: (username) => `Remove ${username}?`,
    description: 'Ends sessions and revokes API tokens. The audit trail keeps the user’s actions.',
    doneText: (username) => `${username} was removed`,
    send: (id) => expectNoBody(api.DELETE('/api/v1/users/{id}', params(id))),
  },
} as const satisfies Record<string, Action>

export function UserActions({ user, onEdit }: { user: User; onEdit: () => void }) {
  const { id, authProvider } = user
  const name = nameOf(user)
  const [openAction, setOpenAction] = useState<keyof typeof actions>()
  const queries = useQueryClient()
  const confirm = async ({ send, doneText }: Action) => {
    await send(id)
    showToast(doneText(name))
    await queries.invalidateQueries({ queryKey: ['users'] })
  }
  const open = (action: keyof typeof actions) => () => setOpenAction(action)
  const action = openAction && actions[openAction]
  return (
    <>
      <Menu
        trigger={<IconButton label={`Actions for ${name}`} icon={Ellipsis} />}
        actions={[
          { label: 'Edit', icon: Pencil, onSelect: onEdit, isDisabled: authProvider !== 'local' },
          { label: actions.endSessions.label, icon: LogOut, onSelect: open('endSessions') },
          { label: actions.revokeTokens.label, icon: KeyRound, onSelect: open('revokeTokens') },
          'separator',
          { label: actions.remove.label, icon: Trash2, onSelect: open('remove'), isDanger: true },
        ]}
      />
      {action && (
        <Confirm
          isOpen
          onClose={() => setOpenAction(undefined)}
          title={action.title(name)}
          description={action.description}
          confirmLabel={action.label}
          onConfirm={() => confirm(action)}
        />
      )}
    </>
  )
}
