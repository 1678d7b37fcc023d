import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, expectNoBody } from '../../api/client.ts'
import { isApiError } from '../../api/api-error.ts'
import { queries } from '../../api/query.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { showToast } from '../../ui/toast.tsx'
import { type Cluster, clusterListKey, clusterQuery } from './cluster-queries.ts'

interface RemoveProps {
  cluster: Cluster
  isOpen: boolean
  onClose: () => void
}

/** Requires the name of the cluster as confirmation. */
export function RemoveCluster({ cluster: { id, name }, isOpen, onClose }: RemoveProps) {
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
    // Stops polling the removed cluster before the page changes.
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
        check={(typed) => (typed.trim() === name ? undefined : 'The name does not match.')}
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
