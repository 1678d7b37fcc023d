import { Link, useNavigate } from '@tanstack/react-router'
import { KeyRound, Pencil, Play, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { isApiError } from '../../api/api-error.ts'
import { api, expectNoBody, type Schemas, unwrap } from '../../api/client.ts'
import { queries, setQueryData } from '../../api/query.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CancelButton, Confirm, Dialog } from '../../ui/dialog.tsx'
import { useDraft } from '../../ui/draft.ts'
import { TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'
import { type Cluster, clusterListKey, clusterNameKey, clusterQuery } from './cluster-queries.ts'
import { type IssuedToken, issueToken } from './enrollment.tsx'
import { SiteField } from './sites.tsx'

export function ClusterActions({ cluster, onIssued }: { cluster: Cluster; onIssued: (issued: IssuedToken) => void }) {
  const mayRun = useHasPermission('jobs:write')
  const mayWrite = useHasPermission('clusters:write')
  const mayRemove = useHasPermission('clusters:admin')
  const [openDialog, setOpenDialog] = useState<'edit' | 'token' | 'remove'>()
  const close = () => setOpenDialog(undefined)
  return (
    <>
      {mayRun && cluster.relay !== null && (
        <ButtonLink to="/jobs/new" search={{ clusterId: cluster.id }} variant="primary" icon={Play}>
          Run a job
        </ButtonLink>
      )}
      {mayWrite && (
        <Button icon={Pencil} onClick={() => setOpenDialog('edit')}>
          Edit cluster
        </Button>
      )}
      {/* For a cluster without a relay, the enrollment card has this action. */}
      {mayWrite && cluster.relay !== null && (
        <Button icon={KeyRound} onClick={() => setOpenDialog('token')}>
          New enrollment token
        </Button>
      )}
      {mayRemove && (
        <Button icon={Trash2} onClick={() => setOpenDialog('remove')}>
          Remove cluster
        </Button>
      )}
      <EditCluster cluster={cluster} isOpen={openDialog === 'edit'} onClose={close} />
      <RemoveCluster cluster={cluster} isOpen={openDialog === 'remove'} onClose={close} />
      <Confirm
        isOpen={openDialog === 'token'}
        onClose={close}
        title="Replace the relay?"
        description="The current relay keeps working until another relay enrolls with the new token."
        confirmLabel="New enrollment token"
        variant="primary"
        onConfirm={async () => onIssued(await issueToken(cluster))}
      />
    </>
  )
}

interface EditProps {
  cluster: Cluster
  isOpen: boolean
  onClose: () => void
}

const EditCluster = ({ isOpen, onClose, ...rest }: EditProps) => (
  <Dialog isOpen={isOpen} onClose={onClose} title="Edit cluster">
    <EditForm onDone={onClose} {...rest} />
  </Dialog>
)

function EditForm({ cluster, onDone }: { cluster: Cluster; onDone: () => void }) {
  // The values when the form was opened. Later changes by other users do not count as edits of this form.
  const [before] = useState(cluster)
  const [siteId, setSiteId] = useDraft('site', before.siteId ?? '')
  const save = async ({ name = '' }: Record<string, string>) => {
    const body = changeOf(before, name, siteId)
    if (Object.keys(body).length > 0) {
      const { id } = cluster
      const changedCluster = await unwrap(api.PATCH('/api/v1/clusters/{id}', { params: { path: { id } }, body }))
      await setQueryData(clusterQuery(id).queryKey, () => changedCluster)
      for (const queryKey of [clusterListKey, clusterNameKey]) void queries.invalidateQueries({ queryKey })
      showToast('Cluster updated')
    }
    onDone()
  }
  return (
    <Form submitLabel="Save changes" onSubmit={save} actions={<CancelButton />}>
      <TextField name="name" label="Name" defaultValue={before.name} required maxLength={64} autoComplete="off" />
      <SiteField value={siteId} onChange={setSiteId} />
    </Form>
  )
}

// Only changed fields are sent, because other users may have changed the other fields.
const changeOf = (cluster: Cluster, name: string, siteId: string): Schemas['ClusterUpdate'] => ({
  ...(name.trim() !== cluster.name && { name }),
  ...(siteId !== (cluster.siteId ?? '') && { siteId: siteId || null }),
})

interface RemoveProps {
  cluster: Cluster
  isOpen: boolean
  onClose: () => void
}

/** Removes a cluster after the user has typed its name. */
function RemoveCluster({ cluster: { id, name }, isOpen, onClose }: RemoveProps) {
  const navigate = useNavigate()
  const [hasActiveJobs, setHasActiveJobs] = useState(false)
  const remove = async () => {
    setHasActiveJobs(false)
    try {
      await expectNoBody(api.DELETE('/api/v1/clusters/{id}', { params: { path: { id } } }))
    } catch (error) {
      setHasActiveJobs(isApiError(error, 'cluster_has_active_jobs'))
      throw error
    }
    showToast('Cluster removed', name)
    // The removed cluster must not be polled until the page changes.
    await queries.cancelQueries({ queryKey: clusterQuery(id).queryKey })
    await navigate({ to: '/clusters' })
    queries.removeQueries({ queryKey: clusterQuery(id).queryKey })
    void queries.invalidateQueries({ queryKey: clusterListKey })
  }
  return (
    <Confirm
      isOpen={isOpen}
      onClose={onClose}
      title={`Remove ${name}?`}
      description="This deletes the cluster, its jobs and its history permanently. Its machines are not changed: stop the relay there."
      confirmLabel="Remove cluster"
      onConfirm={remove}
    >
      <TextField
        name="confirmation"
        label={`Type ${name} to confirm`}
        check={(typedName) => (typedName.trim() === name ? undefined : 'The name does not match.')}
        autoComplete="off"
      />
      {hasActiveJobs && (
        <Link to="/jobs" search={{ clusterId: id }}>
          Show the jobs of this cluster
        </Link>
      )}
    </Confirm>
  )
}
