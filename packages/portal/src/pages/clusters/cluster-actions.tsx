import { KeyRound, Pencil, Play, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import type { Cluster } from './cluster-queries.ts'
import { EditCluster } from './edit-cluster.tsx'
import { type Issued, issueToken } from './enrollment-card.tsx'
import { RemoveCluster } from './remove-cluster.tsx'

interface ActionsProps {
  cluster: Cluster
  onIssued: (issued: Issued) => void
}

export function ClusterActions({ cluster, onIssued }: ActionsProps) {
  const mayRun = useHasPermission('jobs:write')
  const mayWrite = useHasPermission('clusters:write')
  const mayRemove = useHasPermission('clusters:admin')
  const [open, setOpen] = useState<'edit' | 'token' | 'remove'>()
  const close = () => setOpen(undefined)
  return (
    <>
      {mayRun && cluster.relay !== null && (
        <ButtonLink to="/jobs/new" search={{ clusterId: cluster.id }} look="primary" icon={Play}>
          Run a job
        </ButtonLink>
      )}
      {mayWrite && (
        <Button icon={Pencil} onClick={() => setOpen('edit')}>
          Edit cluster
        </Button>
      )}
      {/* A cluster without a relay offers this in its enrollment card. */}
      {mayWrite && cluster.relay !== null && (
        <Button icon={KeyRound} onClick={() => setOpen('token')}>
          New enrollment token
        </Button>
      )}
      {mayRemove && (
        <Button icon={Trash2} onClick={() => setOpen('remove')}>
          Remove cluster
        </Button>
      )}
      <EditCluster cluster={cluster} isOpen={open === 'edit'} onClose={close} />
      <RemoveCluster cluster={cluster} isOpen={open === 'remove'} onClose={close} />
      <Confirm
        isOpen={open === 'token'}
        onClose={close}
        title="Replace the relay?"
        description="The current relay keeps working until another relay enrolls with the new token."
        confirmLabel="New enrollment token"
        look="primary"
        onConfirm={async () => onIssued(await issueToken(cluster))}
      />
    </>
  )
}
