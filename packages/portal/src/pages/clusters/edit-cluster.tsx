import { useState } from 'react'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { setQueryData, queries } from '../../api/query.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'
import { clusterNameKey } from './cluster-names.ts'
import { type Cluster, clusterListKey, clusterQuery } from './cluster-queries.ts'
import { SiteField } from './site-field.tsx'

interface EditProps {
  cluster: Cluster
  isOpen: boolean
  onClose: () => void
}

/** Renames a cluster or changes its site. */
export const EditCluster = ({ isOpen, onClose, ...rest }: EditProps) => (
  <Dialog isOpen={isOpen} onClose={onClose} title="Edit cluster">
    <EditForm onDone={onClose} {...rest} />
  </Dialog>
)

function EditForm({ cluster, onDone }: { cluster: Cluster; onDone: () => void }) {
  // The values when the form was opened: later changes of other users are not edits of this form.
  const [before] = useState(cluster)
  const [siteId, setSiteId] = useState(before.siteId ?? '')
  const save = async ({ name = '' }: Record<string, string>) => {
    const body = changeOf(before, name, siteId)
    if (Object.keys(body).length > 0) {
      const { id } = cluster
      const changed = await unwrap(api.PATCH('/api/v1/clusters/{id}', { params: { path: { id } }, body }))
      await setQueryData(clusterQuery(id).queryKey, () => changed)
      for (const queryKey of [clusterListKey, clusterNameKey]) void queries.invalidateQueries({ queryKey })
      showToast('Cluster updated')
    }
    onDone()
  }
  return (
    <Form submitLabel="Save changes" onSubmit={save} actions={<Button onClick={onDone}>Cancel</Button>}>
      <TextField name="name" label="Name" defaultValue={before.name} required maxLength={64} autoComplete="off" />
      <SiteField value={siteId} onChange={setSiteId} />
    </Form>
  )
}

/** Sends changed fields only, because other users may change the rest. */
const changeOf = (cluster: Cluster, name: string, siteId: string): Schemas['ClusterUpdate'] => ({
  ...(name.trim() !== cluster.name && { name }),
  ...(siteId !== (cluster.siteId ?? '') && { siteId: siteId || null }),
})
