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

/** A token that was issued on this page. */
export interface Issued {
  relayCommand: string
  /** The relay that the cluster had then. */
  previousRelayId: string | undefined
}

/** Issues a new enrollment token for a cluster; those that were not used are void from then on. */
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

/** Of a cluster that waits for a relay: what starts one, or a way to it, and whether it is there. */
export const EnrollmentCard = ({ cluster, issued, onIssued }: EnrollmentCardProps) => (
  <Card title={cluster.relay === null ? 'This cluster waits for its relay' : 'Relay'}>
    {issued !== undefined && <RelayCommand command={issued.relayCommand} />}
    {issued === undefined && cluster.relay === null && <FirstToken cluster={cluster} onIssued={onIssued} />}
    <WaitingForRelay
      // A new token begins a new wait.
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
        The command that starts it was shown when the cluster was registered, or when its last token was issued.
        {mayWrite && ' Where it is lost or older than a day, issue a new one: the old one stops working.'}
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
