import { useQuery, useQueryClient } from '@tanstack/react-query'
import { KeyRound, Plus } from 'lucide-react'
import { useState } from 'react'
import { type Permission, useMe } from '../../api/account.ts'
import { api, expectNoBody, type Schemas, unwrap } from '../../api/client.ts'
import { permissionTexts } from '../../api/permissions.ts'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { CopyField } from '../../ui/copy.tsx'
import { CancelButton, Confirm, Dialog } from '../../ui/dialog.tsx'
import { useDraft } from '../../ui/draft.ts'
import { CheckGroup, SelectField, TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { EmptyState, Loaded } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { Time, useNow } from '../../ui/time.tsx'
import { showToast } from '../../ui/toast.tsx'
import styles from './account.module.css'

type ApiToken = Schemas['ApiToken']

export function Tokens() {
  const [isCreating, setIsCreating] = useState(false)
  const query = useQuery({ queryKey: ['api-tokens'], queryFn: () => unwrap(api.GET('/api/v1/users/me/tokens')) })
  return (
    <Card
      title="API tokens"
      actions={
        <Button variant="primary" icon={Plus} onClick={() => setIsCreating(true)}>
          Create API token
        </Button>
      }
    >
      <p className={styles['text']}>
        For programs that call the API as you. A token never has more permissions than you.
      </p>
      <Loaded query={query} what="your API tokens">
        {({ items }) => <TokenList tokens={items} />}
      </Loaded>
      {isCreating && <NewToken onClose={() => setIsCreating(false)} />}
    </Card>
  )
}

function TokenList({ tokens }: { tokens: readonly ApiToken[] }) {
  const [revoking, setRevoking] = useState<ApiToken>()
  const queries = useQueryClient()
  if (tokens.length === 0) {
    return (
      <EmptyState icon={KeyRound} title="No API tokens">
        Create a token for a script, so that it does not need your password.
      </EmptyState>
    )
  }
  const revoke = async (id: string) => {
    await expectNoBody(api.DELETE('/api/v1/users/me/tokens/{id}', { params: { path: { id } } }))
    showToast('API token revoked')
    await queries.invalidateQueries({ queryKey: ['api-tokens'] })
  }
  return (
    <>
      <TokenTable tokens={tokens} onRevoke={setRevoking} />
      {revoking && (
        <Confirm
          isOpen
          onClose={() => setRevoking(undefined)}
          title={`Revoke ${revoking.name}?`}
          description="Programs that use it lose access immediately. This cannot be undone."
          confirmLabel="Revoke"
          onConfirm={() => revoke(revoking.id)}
        />
      )}
    </>
  )
}

const TokenTable = ({ tokens, onRevoke }: { tokens: readonly ApiToken[]; onRevoke: (token: ApiToken) => void }) => (
  <Table
    label="API tokens"
    rows={tokens}
    keyOf={({ id }) => id}
    columns={[
      { title: 'Name', cell: ({ name }) => name },
      { title: 'Permissions', cell: ({ permissions }) => permissions.join(', ') || 'none' },
      { title: 'Expires', cell: ({ expiresAt }) => <Expiry at={expiresAt} /> },
      { title: 'Last used', cell: ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : <Time at={lastUsedAt} />) },
      {
        title: '',
        isEnd: true,
        isNarrow: true,
        cell: (token) => (
          <Button onClick={() => onRevoke(token)} aria-label={`Revoke ${token.name}`}>
            Revoke
          </Button>
        ),
      },
    ]}
  />
)

function Expiry({ at }: { at: string | null }) {
  const nowMs = useNow()
  if (at === null) return 'never'
  return (
    <>
      {Date.parse(at) <= nowMs && 'expired '}
      <Time at={at} />
    </>
  )
}

type CreatedApiToken = Schemas['CreatedApiToken']

const dayMs = 86_400_000

// Values are days until the token expires; 0 means never.
const lifetimes = [
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In a year' },
  { value: '0', label: 'Never' },
]

function NewToken({ onClose }: { onClose: () => void }) {
  const [created, setCreated] = useState<CreatedApiToken>()
  return (
    <Dialog isOpen onClose={onClose} title={created === undefined ? 'Create API token' : `API token ${created.name}`}>
      {created === undefined ? (
        <TokenForm onCreated={setCreated} />
      ) : (
        <>
          <p>Copy the token now. It is not shown again.</p>
          <CopyField label="API token" text={created.token} />
          <div>
            <Button variant="primary" onClick={onClose}>
              Done
            </Button>
          </div>
        </>
      )}
    </Dialog>
  )
}

const withRequired = (chosen: Permission[]): Permission[] =>
  chosen.includes('modules:install') ? [...new Set([...chosen, 'platform:admin' as const])] : chosen

function TokenForm({ onCreated }: { onCreated: (token: CreatedApiToken) => void }) {
  const { permissions } = useMe()
  const [chosen, setChosen] = useDraft<Permission[]>('permissions', [])
  const [wasSubmitted, setWasSubmitted] = useState(false)
  const queries = useQueryClient()
  const create = async ({ name = '', days }: FormValues) => {
    setWasSubmitted(true)
    // The field shows the problem; a token without permissions would be useless.
    if (chosen.length === 0) return false
    const expiresAt = days === '0' ? null : new Date(Date.now() + Number(days) * dayMs).toISOString()
    const body = { name: name.trim(), permissions: chosen, expiresAt }
    onCreated(await unwrap(api.POST('/api/v1/users/me/tokens', { body })))
    await queries.invalidateQueries({ queryKey: ['api-tokens'] })
    return true
  }
  return (
    <Form submitLabel="Create" onSubmit={create} actions={<CancelButton />}>
      <TextField name="name" label="Name" hint="For example, the script that uses it." maxLength={100} required />
      <SelectField name="days" label="Expires" options={lifetimes} defaultValue="90" />
      <CheckGroup
        label="Permissions"
        choices={permissions.map((value) => ({ value, label: permissionTexts[value], hint: <code>{value}</code> }))}
        chosen={chosen}
        onChange={(next) => setChosen(withRequired(next))}
        problem={wasSubmitted && chosen.length === 0 ? 'Select at least one permission.' : undefined}
      />
      <div className={styles['choices']}>
        <Button onClick={() => setChosen([...permissions])}>Select all</Button>
      </div>
    </Form>
  )
}
