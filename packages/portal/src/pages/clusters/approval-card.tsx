import { Check } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { api, expectNoBody } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { showToast } from '../../ui/toast.tsx'
import { type Cluster, clusterListKey, clusterQuery } from './cluster-queries.ts'
import styles from './clusters.module.css'

/** Asks for the approval of a relay that enrolled with a key that requires approval. */
export function ApprovalCard({ cluster: { id, name } }: { cluster: Cluster }) {
  const mayApprove = useHasPermission('clusters:admin')
  const [isAsking, setIsAsking] = useState(false)
  const approve = async () => {
    await expectNoBody(api.POST('/api/v1/clusters/{id}/approve', { params: { path: { id } } }))
    void queries.invalidateQueries({ queryKey: clusterListKey })
    await queries.invalidateQueries({ queryKey: clusterQuery(id).queryKey })
    showToast('Cluster approved', name)
  }
  return (
    <Card title="Approval needed">
      <p>
        The relay enrolled with a key that requires approval, and receives no jobs until then. Check the machine: the
        audit trail has its name and address. To refuse it, remove the cluster.
        {!mayApprove && ' Ask an administrator to approve it.'}
      </p>
      {mayApprove && (
        <div className={styles['buttons']}>
          <Button variant="primary" icon={Check} onClick={() => setIsAsking(true)}>
            Approve cluster
          </Button>
        </div>
      )}
      <Confirm
        isOpen={isAsking}
        onClose={() => setIsAsking(false)}
        title={`Approve ${name}?`}
        description="Its relay then receives jobs."
        confirmLabel="Approve cluster"
        variant="primary"
        onConfirm={approve}
      />
    </Card>
  )
}
