import { useQuery } from '@tanstack/react-query'
import { Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { api, expectNoBody } from '../../api/client.ts'
import { setQueryData } from '../../api/query.ts'
import { IconButton } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { Loaded } from '../../ui/state.tsx'
import { createSite, type Site, sitesQuery } from './cluster-queries.ts'
import styles from './clusters.module.css'

export function SitesDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const mayWrite = useHasPermission('clusters:write')
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title="Sites"
      description="A site groups clusters. Remove a site only when no cluster uses it."
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
          {sites.length === 0 && <p className={styles['quiet']}>No sites yet.</p>}
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

function RemoveSite({ site: { id, name }, onFailure }: { site: Site; onFailure: (error: unknown) => void }) {
  const [isBusy, setIsBusy] = useState(false)
  const remove = async () => {
    if (isBusy) return
    setIsBusy(true)
    onFailure(undefined)
    try {
      await expectNoBody(api.DELETE('/api/v1/sites/{id}', { params: { path: { id } } }))
      await setQueryData(sitesQuery.queryKey, (knownSites) => knownSites.filter((site) => site.id !== id))
    } catch (error) {
      onFailure(error)
      setIsBusy(false)
    }
  }
  return <IconButton label={`Remove site ${name}`} icon={Trash2} isBusy={isBusy} onClick={() => void remove()} />
}

/** The form for a new site. It is remounted after each success, so that it is empty again. */
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
      <TextField name="name" label="Site name" required maxLength={64} autoComplete="off" />
    </Form>
  )
}

/** The value of "No site" in a field that starts without a choice. */
export const noSite = 'none'

interface SiteFieldProps {
  /** Id of the selected site; '' if none is selected. */
  value: string
  onChange: (siteId: string) => void
  /** Starts without a choice. The value '' then means that nothing is chosen. */
  mustChoose?: boolean
}

export function SiteField({ value, onChange, mustChoose = false }: SiteFieldProps) {
  const { data: sites = [] } = useQuery(sitesQuery)
  const noneOption = mustChoose
    ? [
        { value: '', label: 'Choose a site' },
        { value: noSite, label: 'No site' },
      ]
    : [{ value: '', label: 'No site' }]
  const options = [...noneOption, ...sites.map(({ id, name }) => ({ value: id, label: name }))]
  return (
    <SelectField
      name="siteId"
      label="Site"
      isOptional={!mustChoose}
      value={value}
      options={options}
      onChange={onChange}
    />
  )
}
