import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, expectNoBody, type Schemas, unwrap } from '../../api/client.ts'
import { isApiError } from '../../api/api-error.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Loaded } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { showToast } from '../../ui/toast.tsx'
import styles from './account.module.css'

type Session = Schemas['Session']

export function Sessions() {
  const query = useQuery({ queryKey: ['sessions'], queryFn: () => unwrap(api.GET('/api/v1/users/me/sessions')) })
  return (
    <Loaded query={query} what="your sessions">
      {({ items }) => <SessionList sessions={items} />}
    </Loaded>
  )
}

function SessionList({ sessions }: { sessions: readonly Session[] }) {
  const [sessionsToEnd, setSessionsToEnd] = useState<readonly Session[]>([])
  const queries = useQueryClient()
  const others = sessions.filter(({ isCurrent }) => !isCurrent)
  const endAll = async () => {
    try {
      for (const { id } of sessionsToEnd) await end(id)
      showToast(sessionsToEnd.length === 1 ? 'Session ended' : `${sessionsToEnd.length} sessions ended`)
    } finally {
      await queries.invalidateQueries({ queryKey: ['sessions'] })
    }
  }
  return (
    <Card
      title="Sessions"
      actions={
        <Button disabled={others.length === 0} onClick={() => setSessionsToEnd(others)}>
          End all other sessions
        </Button>
      }
    >
      <p className={styles['text']}>Sessions end after seven days without use.</p>
      <SessionTable sessions={sessions} onEnd={(session) => setSessionsToEnd([session])} />
      <Confirm
        isOpen={sessionsToEnd.length > 0}
        onClose={() => setSessionsToEnd([])}
        title={sessionsToEnd.length === 1 ? 'End this session?' : `End ${sessionsToEnd.length} sessions?`}
        description="It can change nothing from now on and is signed out within a minute."
        confirmLabel="End"
        onConfirm={endAll}
      />
    </Card>
  )
}

// The session may have ended since the list was loaded.
async function end(id: string): Promise<void> {
  try {
    await expectNoBody(api.DELETE('/api/v1/users/me/sessions/{id}', { params: { path: { id } } }))
  } catch (error) {
    if (!isApiError(error, 'session_not_found')) throw error
  }
}

const SessionTable = ({ sessions, onEnd }: { sessions: readonly Session[]; onEnd: (session: Session) => void }) => (
  <Table
    label="Sessions"
    rows={sessions}
    keyOf={({ id }) => id}
    columns={[
      {
        title: 'Signed in',
        cell: ({ createdAt }) => <Time at={createdAt} />,
      },
      { title: 'Last used', cell: ({ lastUsedAt }) => <Time at={lastUsedAt} /> },
      { title: 'Address', cell: ({ address }) => address || 'unknown' },
      {
        title: '',
        isEnd: true,
        isNarrow: true,
        cell: (session) =>
          session.isCurrent ? (
            <Badge variant="good">This session</Badge>
          ) : (
            <Button onClick={() => onEnd(session)} aria-label={`End the session from ${session.address}`}>
              End
            </Button>
          ),
      },
    ]}
  />
)
