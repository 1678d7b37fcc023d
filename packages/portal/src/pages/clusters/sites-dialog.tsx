import { useQuery } from '@tanstack/react-query'
import { Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { api, expectNoBody } from '../../api/client.ts'
import { setQueryData } from '../../api/query.ts'
import { IconButton } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { Loaded } from '../../ui/state.tsx'
import { createSite, type Site, sitesQuery } from './cluster-queries.ts'
import styles from './clusters.module.css'

interface SitesDialogProps {
  isOpen: boolean
  onClose: () => void
}

/** The places that clusters stand in: all of them, a new one, and away with one that nothing stands in. */
export function SitesDialog({ isOpen, onClose }: SitesDialogProps) {
  const mayWrite = useHasPermission('clusters:write')
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title="Sites"
      description="A site is a place that clusters stand in. One that no cluster belongs to can be removed."
    >
      <SiteList mayWrite={mayWrite} />
      {mayWrite && <NewSiteForm onCreated={() => undefined} />}
    </Dialog>
  )
}

function SiteList({ mayWrite }: { mayWrite: boolean }) {
  const query = useQuery(sitesQuery)
  const [failure, setFailure] = useState<unknown>()
  return (
    <Loaded query={query} what="the sites">
      {(sites) => (
        <>
          {sites.length === 0 && <p className={styles['quiet']}>There are no sites yet.</p>}
          <ul className={styles['entries']} aria-label="Sites">
            {sites.map((site) => (
              <li key={site.id}>
                <span className={styles['entry']}>{site.name}</span>
                {mayWrite && <RemoveSite site={site} onFailure={setFailure} />}
              </li>
            ))}
          </ul>
          {failure !== undefined && <ErrorNote error={failure} />}
        </>
      )}
    </Loaded>
  )
}

interface RemoveSiteProps {
  site: Site
  onFailure: (error: unknown) => void
}

function RemoveSite({ site: { id, name }, onFailure }: RemoveSiteProps) {
  const [isBusy, setIsBusy] = useState(false)
  const remove = async () => {
    if (isBusy) return
    setIsBusy(true)
    onFailure(undefined)
    try {
      await expectNoBody(api.DELETE('/api/v1/sites/{id}', { params: { path: { id } } }))
      await setQueryData(sitesQuery.queryKey, (known) => known.filter((site) => site.id !== id))
    } catch (error) {
      onFailure(error)
      setIsBusy(false)
    }
  }
  return <IconButton label={`Remove site ${name}`} icon={Trash2} isBusy={isBusy} onClick={() => void remove()} />
}

/** Creates a site. A fresh form follows the one that was sent. */
export function NewSiteForm({ onCreated }: { onCreated: (site: Site) => void }) {
  const [count, setCount] = useState(0)
  return (
    <Form
      key={count}
      submitLabel="Create site"
      onSubmit={async ({ name = '' }) => {
        onCreated(await createSite(name))
        setCount(count + 1)
      }}
    >
      <TextField name="name" label="Name of the new site" required maxLength={64} autoComplete="off" />
    </Form>
  )
}
