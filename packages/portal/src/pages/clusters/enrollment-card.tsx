import { KeyRound } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import type { Cluster } from './cluster-queries.ts'
import styles from './clusters.module.css'
import { RelayCommand } from './relay-command.tsx'
import { WaitingForRelay } from './waiting-for-relay.tsx'

export interface Issued {
  relayCommand: string
  /** The relay of the cluster at that time. */
  previousRelayId: string | undefined
}

/** Issues a new enrollment token, which revokes unused ones. */
export async function issueToken({ id, relay }: Cluster): Promise<Issued> {
  const path = '/api/v1/clusters/{id}/enrollment-token'
  const { relayCommand } = await unwrap(api.POST(path, { params: { path: { id } } }))
  return { relayCommand, previousRelayId: relay?.id }
}

interface EnrollmentCardProps {
  cluster: Cluster
  issued: Issued | undefined
  onIssued: (issued: Issued) => void
}

/** Shows the relay command of a new token, or offers one, and waits for the relay. */
export const EnrollmentCard = ({ cluster, issued, onIssued }: EnrollmentCardProps) => (
  <Card title={cluster.relay === null ? 'No relay yet' : 'Relay'}>
    {issued !== undefined && <RelayCommand command={issued.relayCommand} />}
    {issued === undefined && cluster.relay === null && <FirstToken cluster={cluster} onIssued={onIssued} />}
    <WaitingForRelay
      // A new token restarts the wait.
      key={issued?.relayCommand}
      clusterId={cluster.id}
      previousRelayId={issued?.previousRelayId}
    />
  </Card>
)

function FirstToken({ cluster, onIssued }: Pick<EnrollmentCardProps, 'cluster' | 'onIssued'>) {
  const mayWrite = useHasPermission('clusters:write')
  const [isBusy, setIsBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>()
  const issue = async () => {
    if (isBusy) return
    setIsBusy(true)
    setFailure(undefined)
    try {
      onIssued(await issueToken(cluster))
    } catch (error) {
      setFailure(error)
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <>
      <p>
        The relay command was shown when the cluster was registered or its last token was issued.
        {mayWrite && ' If it is lost or older than 24 hours, issue a new token. The old one stops working.'}
      </p>
      {failure !== undefined && <ErrorNote error={failure} />}
      {mayWrite && (
        <div className={styles['buttons']}>
          <Button icon={KeyRound} isBusy={isBusy} onClick={() => void issue()}>
            New enrollment token
          </Button>
        </div>
      )}
    </>
  )
}
