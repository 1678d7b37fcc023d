import { Link, Navigate, useNavigate, useSearch } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { oneOfIn } from '../../lib/search.ts'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { useDraft } from '../../ui/draft.ts'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { Page } from '../../ui/page.tsx'
import { clusterTypes } from './cluster-filter.ts'
import { clusterListKey, typeNames } from './cluster-queries.ts'
import styles from './clusters.module.css'
import { RelayCommand, WaitingForRelay } from './enrollment.tsx'
import { LabelChangeFields, labelsSetBy, useLabelChange } from './label-change.tsx'
import { NewSiteForm, SiteField } from './sites.tsx'

type RegisteredCluster = Schemas['RegisteredCluster']

export const RegisterPage = () => (
  <RequirePermission permission="clusters:write" title="Register a cluster">
    <Registration />
  </RequirePermission>
)

function Registration() {
  const [lastRegistered, setLastRegistered] = useState<RegisteredCluster>()
  const { cluster } = useSearch({ from: '/signed-in/clusters/register' })
  const navigate = useNavigate({ from: '/clusters/register' })
  const registeredCluster = lastRegistered?.id === cluster ? lastRegistered : undefined
  // The command is available only once. After a reload, the page of the cluster waits and can issue a new token.
  if (cluster !== undefined && registeredCluster === undefined) {
    return <Navigate to="/clusters/$clusterId" params={{ clusterId: cluster }} replace />
  }
  const onRegistered = (result: RegisteredCluster) => {
    setLastRegistered(result)
    void navigate({ search: { cluster: result.id }, replace: true })
  }
  return (
    <Page title="Register a cluster" parent={{ label: 'Clusters', to: '/clusters' }} isNarrow>
      {registeredCluster === undefined && (
        <p>
          To register many machines with one command, create an{' '}
          <Link to="/clusters/enrollment-keys">enrollment key</Link>.
        </p>
      )}
      {registeredCluster === undefined && <RegisterForm onRegistered={onRegistered} />}
      {registeredCluster !== undefined && <NextSteps cluster={registeredCluster} />}
    </Page>
  )
}

function RegisterForm({ onRegistered }: { onRegistered: (cluster: RegisteredCluster) => void }) {
  const [siteId, setSiteId] = useDraft('site', '')
  const edit = useLabelChange()
  const [isAddingSite, setIsAddingSite] = useState(false)
  const register = async (values: Record<string, string>) => {
    const { name = '' } = values
    const type = oneOfIn(values, 'type', clusterTypes) ?? 'Hypervisor'
    const body = { name, type, ...(siteId && { siteId }), labels: labelsSetBy(edit.complete()) }
    const cluster = await unwrap(api.POST('/api/v1/clusters', { body }))
    onRegistered(cluster)
    void queries.invalidateQueries({ queryKey: clusterListKey })
  }
  return (
    <>
      <Form submitLabel="Register cluster" onSubmit={register}>
        <TextField
          name="name"
          label="Name"
          hint="3 to 64 characters, unique in your organisation."
          required
          maxLength={64}
          autoComplete="off"
        />
        <SelectField
          name="type"
          label="Type"
          options={clusterTypes.map((type) => ({ value: type, label: typeNames[type] }))}
        />
        <div className={styles['beside']}>
          <SiteField value={siteId} onChange={setSiteId} />
          <Button icon={Plus} onClick={() => setIsAddingSite(true)}>
            New site
          </Button>
        </div>
        <LabelChangeFields edit={edit} before={{}} />
      </Form>
      {/* The dialog is outside of the other form, because a nested form would submit both. */}
      <Dialog isOpen={isAddingSite} onClose={() => setIsAddingSite(false)} title="New site">
        <NewSiteForm
          onCreated={(site) => {
            setSiteId(site.id)
            setIsAddingSite(false)
          }}
        />
      </Dialog>
    </>
  )
}

const NextSteps = ({ cluster: { id, name, relayCommand } }: { cluster: RegisteredCluster }) => (
  <Card title={`Start the relay of ${name}`}>
    <RelayCommand command={relayCommand} />
    <WaitingForRelay clusterId={id} hasClusterLink />
  </Card>
)
