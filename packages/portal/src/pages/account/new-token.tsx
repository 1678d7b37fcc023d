import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Permission, useMe } from '../../api/account.ts'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { permissionTexts } from '../../api/permissions.ts'
import { Button } from '../../ui/button.tsx'
import { CheckGroup } from '../../ui/check-group.tsx'
import { CopyField } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import styles from './account.module.css'

type CreatedApiToken = Schemas['CreatedApiToken']

const dayMs = 86_400_000

/** Days until a token expires; 0 means never. */
const lives = [
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In a year' },
  { value: '0', label: 'Never' },
]

/** Creates an API token and shows it once. */
export function NewToken({ onClose }: { onClose: () => void }) {
  const [created, setCreated] = useState<CreatedApiToken>()
  return (
    <Dialog isOpen onClose={onClose} title={created === undefined ? 'Create API token' : `API token ${created.name}`}>
      {created === undefined ? (
        <TokenForm onClose={onClose} onCreated={setCreated} />
      ) : (
        <>
          <p>Copy the token now. It is not shown again.</p>
          <CopyField label="API token" text={created.token} />
          <div>
            <Button look="primary" onClick={onClose}>
              Done
            </Button>
          </div>
        </>
      )}
    </Dialog>
  )
}

interface TokenFormProps {
  onClose: () => void
  onCreated: (token: CreatedApiToken) => void
}

function TokenForm({ onClose, onCreated }: TokenFormProps) {
  const { permissions } = useMe()
  const [chosen, setChosen] = useState<Permission[]>([])
  const [isTried, setIsTried] = useState(false)
  const queries = useQueryClient()
  const create = async ({ name = '', days }: FormValues) => {
    setIsTried(true)
    // A token needs at least one permission.
    if (chosen.length === 0) return
    const expiresAt = days === '0' ? {} : { expiresAt: new Date(Date.now() + Number(days) * dayMs).toISOString() }
    const body = { name: name.trim(), permissions: chosen, ...expiresAt }
    onCreated(await unwrap(api.POST('/api/v1/users/me/tokens', { body })))
    await queries.invalidateQueries({ queryKey: ['api-tokens'] })
  }
  return (
    <Form submitLabel="Create" onSubmit={create} actions={<Button onClick={onClose}>Cancel</Button>}>
      <TextField name="name" label="Name" hint="For example, the script that uses it." maxLength={100} required />
      <SelectField name="days" label="Expires" options={lives} defaultValue="90" />
      <CheckGroup
        label="Permissions"
        choices={permissions.map((value) => ({ value, label: permissionTexts[value], hint: <code>{value}</code> }))}
        chosen={chosen}
        onChange={setChosen}
        problem={isTried && chosen.length === 0 ? 'Select at least one permission.' : undefined}
      />
      <div className={styles['choices']}>
        <Button onClick={() => setChosen([...permissions])}>Select all</Button>
      </div>
    </Form>
  )
}
