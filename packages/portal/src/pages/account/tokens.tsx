import { useQuery, useQueryClient } from '@tanstack/react-query'
import { KeyRound, Plus } from 'lucide-react'
import { useState } from 'react'
import { organisationSettingsQuery, type Permission, useMe } from '../../api/account.ts'
import { api, expectNoBody, type Schemas, unwrap } from '../../api/client.ts'
import { permissionTexts } from '../../api/permissions.ts'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { NewSecret } from '../../ui/copy.tsx'
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
  const [tokenToRevoke, setTokenToRevoke] = useState<ApiToken>()
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
      <TokenTable tokens={tokens} onRevoke={setTokenToRevoke} />
      {tokenToRevoke && (
        <Confirm
          isOpen
          onClose={() => setTokenToRevoke(undefined)}
          title={`Revoke ${tokenToRevoke.name}?`}
          description="Programs that use it lose access immediately. This cannot be undone."
          confirmLabel="Revoke"
          onConfirm={() => revoke(tokenToRevoke.id)}
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

/**
 * Returns the lifetimes to choose from, in days; `Infinity` means never. The first is the default, for which the
 * platform sets the expiry.
 */
function lifetimesOf({ maxTokenLifetimeDays, defaultTokenLifetimeDays }: Schemas['OrganisationSettings']) {
  const maxDays = maxTokenLifetimeDays ?? Infinity
  const defaultDays = Math.min(maxDays, defaultTokenLifetimeDays ?? Infinity)
  const others = [7, 30, 90, 365, maxDays].filter((days) => days <= maxDays && days < Infinity)
  const unlimitedDays = maxDays === Infinity ? [Infinity] : []
  return [...new Set([defaultDays, ...others.toSorted((one, other) => one - other), ...unlimitedDays])]
}

const lifetimeLabel = (days: number): string => {
  if (days === Infinity) return 'Never'
  return days === 365 ? 'In a year' : `In ${days} ${days === 1 ? 'day' : 'days'}`
}

// The clock of the browser may be ahead, and the platform rejects an expiry beyond the maximum.
const clockToleranceMs = 300_000

const expiryAfter = (days: number, maxDays: number | null): string =>
  new Date(Date.now() + days * dayMs - (days === maxDays ? clockToleranceMs : 0)).toISOString()

function NewToken({ onClose }: { onClose: () => void }) {
  const [created, setCreated] = useState<CreatedApiToken>()
  const settings = useQuery(organisationSettingsQuery)
  return (
    <Dialog isOpen onClose={onClose} title={created === undefined ? 'Create API token' : `API token ${created.name}`}>
      {created === undefined ? (
        <Loaded query={settings} what="the lifetimes">
          {(loaded) => <TokenForm settings={loaded} onCreated={setCreated} />}
        </Loaded>
      ) : (
        <NewSecret
          advice="Copy the token now. It is not shown again."
          label="API token"
          text={created.token}
          onDone={onClose}
        />
      )}
    </Dialog>
  )
}

const withRequired = (chosen: Permission[]): Permission[] =>
  chosen.includes('modules:install') ? [...new Set([...chosen, 'platform:admin' as const])] : chosen

interface TokenFormProps {
  settings: Schemas['OrganisationSettings']
  onCreated: (token: CreatedApiToken) => void
}

function TokenForm({ settings, onCreated }: TokenFormProps) {
  const { permissions } = useMe()
  const [chosenPermissions, setChosenPermissions] = useDraft<Permission[]>('permissions', [])
  const lifetimes = lifetimesOf(settings)
  const [defaultDays] = lifetimes
  const options = lifetimes.map((days) => ({ value: String(days), label: lifetimeLabel(days) }))
  const [wasSubmitted, setWasSubmitted] = useState(false)
  const queries = useQueryClient()
  const create = async ({ name = '', days }: FormValues) => {
    setWasSubmitted(true)
    // The field shows the problem.
    if (chosenPermissions.length === 0) return false
    const expiry = Number(days) === Infinity ? null : expiryAfter(Number(days), settings.maxTokenLifetimeDays)
    const body = {
      name: name.trim(),
      permissions: chosenPermissions,
      ...(Number(days) !== defaultDays && { expiresAt: expiry }),
    }
    onCreated(await unwrap(api.POST('/api/v1/users/me/tokens', { body })))
    await queries.invalidateQueries({ queryKey: ['api-tokens'] })
    return true
  }
  return (
    <Form submitLabel="Create" onSubmit={create} actions={<CancelButton />}>
      <TextField name="name" label="Name" hint="For example, the script that uses it." maxLength={100} required />
      <SelectField name="days" label="Expires" options={options} defaultValue={String(defaultDays)} />
      <CheckGroup
        label="Permissions"
        choices={permissions.map((value) => ({ value, label: permissionTexts[value], hint: <code>{value}</code> }))}
        chosen={chosenPermissions}
        onChange={(permissions) => setChosenPermissions(withRequired(permissions))}
        problem={wasSubmitted && chosenPermissions.length === 0 ? 'Select at least one permission.' : undefined}
      />
      <div className={styles['choices']}>
        <Button onClick={() => setChosenPermissions([...permissions])}>Select all</Button>
      </div>
    </Form>
  )
}
