import { useQuery, useQueryClient } from '@tanstack/react-query'
import { KeyRound, Plus } from 'lucide-react'
import { useState } from 'react'
import { api, unwrap, type Schemas, expectNoBody } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { EmptyState, Loaded } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { Time, useNow } from '../../ui/time.tsx'
import { showToast } from '../../ui/toast.tsx'
import styles from './account.module.css'
import { NewToken } from './new-token.tsx'

type ApiToken = Schemas['ApiToken']

export function Tokens() {
  const [isNew, setIsNew] = useState(false)
  const query = useQuery({ queryKey: ['api-tokens'], queryFn: () => unwrap(api.GET('/api/v1/users/me/tokens')) })
  return (
    <Card
      title="API tokens"
      actions={
        <Button look="primary" icon={Plus} onClick={() => setIsNew(true)}>
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
      {isNew && <NewToken onClose={() => setIsNew(false)} />}
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

interface TokenTableProps {
  tokens: readonly ApiToken[]
  onRevoke: (token: ApiToken) => void
}

const TokenTable = ({ tokens, onRevoke }: TokenTableProps) => (
  <Table
    label="API tokens"
    rows={tokens}
    keyOf={({ id }) => id}
    columns={[
      { title: 'Name', cell: ({ name }) => name },
      { title: 'May do', cell: ({ permissions }) => permissions.join(', ') || 'nothing' },
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
