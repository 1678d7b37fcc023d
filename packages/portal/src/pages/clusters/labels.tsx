import { isDerivedKey } from '@platform/contract/selector'
import { Link } from '@tanstack/react-router'
import { Pencil } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { queries, setQueryData } from '../../api/query.ts'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { Form } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'
import { type Cluster, clusterListKey, clusterQuery } from './cluster-queries.ts'
import styles from './clusters.module.css'
import { LabelChangeFields, useLabelChange } from './label-change.tsx'
import type { Labels } from './label-queries.ts'
import { labelText } from './selector-completions.ts'

const ownLabels = (labels: Labels) => Object.entries(labels).filter(([key]) => !isDerivedKey(key))
const derivedLabels = (labels: Labels) => Object.entries(labels).filter(([key]) => isDerivedKey(key))

const maxShown = 3

/** The first labels of a cluster in one line. Derived labels are omitted. */
export function LabelSummary({ labels }: { labels: Labels }) {
  const texts = ownLabels(labels).map(([key, value]) => labelText(key, value))
  const others = texts.slice(maxShown)
  return (
    <span className={styles['chipLine']}>
      {texts.slice(0, maxShown).map((text) => (
        <span key={text} className={styles['chip']} title={text}>
          {text}
        </span>
      ))}
      {others.length > 0 && <span title={others.join(', ')}>+{others.length}</span>}
    </span>
  )
}

/** All labels of a cluster. Each links to the clusters that have the same label. */
export function LabelsCard({ cluster }: { cluster: Cluster }) {
  const mayWrite = useHasPermission('clusters:write')
  const [isEditing, setIsEditing] = useState(false)
  const edit = mayWrite && (
    <Button icon={Pencil} onClick={() => setIsEditing(true)}>
      Edit labels
    </Button>
  )
  return (
    <Card title="Labels" actions={edit || undefined}>
      <Chips label="Labels" labels={ownLabels(cluster.labels)} />
      <Chips label="Derived labels" labels={derivedLabels(cluster.labels)} />
      <Dialog
        isOpen={isEditing}
        onClose={() => setIsEditing(false)}
        title={`Labels of ${cluster.name}`}
        description="Labels that begin with platform/ or facts/ are derived and cannot be changed."
      >
        <EditLabels cluster={cluster} onDone={() => setIsEditing(false)} />
      </Dialog>
    </Card>
  )
}

function Chips({ label, labels }: { label: string; labels: readonly (readonly [string, string])[] }) {
  if (labels.length === 0) return label === 'Labels' && <p className={styles['quiet']}>No labels yet.</p>
  return (
    <ul aria-label={label} className={styles['chips']}>
      {labels.map(([key, value]) => (
        <li key={key}>
          <Link to="/clusters" search={{ selector: `${key}=${value}` }} className={styles['chip']}>
            {labelText(key, value)}
          </Link>
        </li>
      ))}
    </ul>
  )
}

function EditLabels({ cluster, onDone }: { cluster: Cluster; onDone: () => void }) {
  const edit = useLabelChange()
  const save = async () => {
    const labels = edit.complete()
    if (Object.keys(labels).length > 0) {
      const { id } = cluster
      const params = { path: { id } }
      // Only changes are sent, because other users may have changed other labels.
      const changedCluster = await unwrap(api.PATCH('/api/v1/clusters/{id}', { params, body: { labels } }))
      await setQueryData(clusterQuery(id).queryKey, () => changedCluster)
      refreshLabels()
      showToast('Labels updated', cluster.name)
    }
    onDone()
  }
  return (
    <Form submitLabel="Save labels" onSubmit={save} actions={<CancelButton />}>
      <LabelChangeFields edit={edit} before={Object.fromEntries(ownLabels(cluster.labels))} />
      <Chips label="Derived labels" labels={derivedLabels(cluster.labels)} />
    </Form>
  )
}

/** Refetches all data that depends on the labels or sites of clusters. */
export function refreshLabels(): void {
  for (const queryKey of [clusterListKey, ['labels'], ['targets']]) void queries.invalidateQueries({ queryKey })
}
