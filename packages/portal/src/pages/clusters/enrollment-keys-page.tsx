import { useQueryClient } from '@tanstack/react-query'
import { KeyRound, Plus } from 'lucide-react'
import { useState } from 'react'
import { api, expectNoBody, type Schemas, unwrap } from '../../api/client.ts'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Page } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { EmptyState } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { showToast } from '../../ui/toast.tsx'
import { pageSize } from '../../ui/use-pages.ts'
import type { VirtualColumn } from '../../ui/virtual-table.tsx'
import { enrollmentKeysKey, NewEnrollmentKeyDialog } from './new-enrollment-key.tsx'

type EnrollmentKey = Schemas['EnrollmentKey']

export const EnrollmentKeysPage = () => (
  <RequirePermission permission="clusters:write" title="Enrollment keys">
    <KeyList />
  </RequirePermission>
)

function KeyList() {
  const queries = useQueryClient()
  const [isCreating, setIsCreating] = useState(false)
  const [keyToRevoke, setKeyToRevoke] = useState<EnrollmentKey>()
  const revoke = async ({ id, name }: EnrollmentKey) => {
    await expectNoBody(api.DELETE('/api/v1/enrollment-keys/{id}', { params: { path: { id } } }))
    showToast('Enrollment key revoked', name)
    await queries.invalidateQueries({ queryKey: enrollmentKeysKey })
  }
  return (
    <Page
      title="Enrollment keys"
      parent={{ label: 'Clusters', to: '/clusters' }}
      lead="Many relays enroll with one key. Each of them creates a cluster."
      actions={
        <Button variant="primary" icon={Plus} onClick={() => setIsCreating(true)}>
          Create enrollment key
        </Button>
      }
    >
      <PagedTable
        label="Enrollment keys"
        queryKey={enrollmentKeysKey}
        fetchPage={(page, signal) =>
          unwrap(api.GET('/api/v1/enrollment-keys', { params: { query: { page, pageSize } }, signal }))
        }
        columns={columnsOf(setKeyToRevoke)}
        rowKey={({ id }) => id}
        summary={(total) => (total === 1 ? '1 key' : `${total.toLocaleString('en')} keys`)}
        empty={
          <EmptyState icon={KeyRound} title="No enrollment keys">
            Create one to register many machines with the same command.
          </EmptyState>
        }
      />
      {isCreating && <NewEnrollmentKeyDialog onClose={() => setIsCreating(false)} />}
      {keyToRevoke !== undefined && (
        <Confirm
          isOpen
          onClose={() => setKeyToRevoke(undefined)}
          title={`Revoke ${keyToRevoke.name}?`}
          description="No further relay can enroll with it. Relays that have enrolled are not affected."
          confirmLabel="Revoke"
          onConfirm={() => revoke(keyToRevoke)}
        />
      )}
    </Page>
  )
}

const columnsOf = (onRevoke: (key: EnrollmentKey) => void): VirtualColumn<EnrollmentKey>[] => [
  {
    title: 'Name',
    width: 'minmax(9rem, 2fr)',
    narrow: 'start',
    cell: ({ name, requireApproval }) => (
      <>
        {name} {requireApproval && <Badge>Approval</Badge>}
      </>
    ),
  },
  {
    title: 'Uses',
    width: '8rem',
    isEnd: true,
    cell: ({ usedCount, maxUses }) => `${usedCount.toLocaleString('en')} of ${maxUses.toLocaleString('en')}`,
  },
  { title: 'Expires', width: '12rem', cell: ({ expiresAt }) => <Time at={expiresAt} /> },
  {
    title: 'Names',
    width: 'minmax(7rem, 1fr)',
    narrow: 'hidden',
    cell: ({ nameTemplate }) => <code>{nameTemplate}</code>,
  },
  { title: 'Created by', width: 'minmax(6rem, 1fr)', narrow: 'hidden', cell: ({ createdBy }) => createdBy.username },
  {
    title: '',
    width: '6rem',
    isEnd: true,
    narrow: 'end',
    cell: (key) => (
      <Button onClick={() => onRevoke(key)} aria-label={`Revoke ${key.name}`}>
        Revoke
      </Button>
    ),
  },
]
