import { useQuery, useQueryClient } from '@tanstack/react-query'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { DescriptionList } from '../../ui/card.tsx'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { Loaded } from '../../ui/state.tsx'
import { showToast } from '../../ui/toast.tsx'

const resources = [
  ['clusters', 'Clusters', 100_000],
  ['users', 'Users', 100_000],
  ['webhooks', 'Webhooks', 50],
  ['activeJobs', 'Queued and running jobs', 10_000_000],
] as const

export function UsageDialog({ onClose }: { onClose: () => void }) {
  const query = useQuery({
    queryKey: ['organisation-usage'],
    queryFn: () => unwrap(api.GET('/api/v1/organisation/usage')),
  })
  return (
    <Dialog isOpen onClose={onClose} title="Usage of your organisation">
      <p>A platform administrator can change the limits.</p>
      <Loaded query={query} what="the usage">
        {(usage) => (
          <DescriptionList
            items={resources.map(([name, label]) => [label, `${usage[name].used} of ${usage[name].limit}`] as const)}
          />
        )}
      </Loaded>
    </Dialog>
  )
}

export function EditQuotas({ organisation, onClose }: { organisation: Schemas['Organisation']; onClose: () => void }) {
  const queries = useQueryClient()
  const save = async (values: FormValues) => {
    const enteredQuotas = resources.map(([name]) => [name, values[name] ? Number(values[name]) : null] as const)
    const quotas = Object.fromEntries(enteredQuotas.filter(([name, value]) => value !== organisation.quotas[name]))
    const params = { path: { id: organisation.id } }
    await unwrap(api.PATCH('/api/v1/platform/organisations/{id}', { params, body: { quotas } }))
    showToast(`Quotas of ${organisation.name} saved`)
    onClose()
    await queries.invalidateQueries({ queryKey: ['organisations'] })
  }
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={`Quotas of ${organisation.name}`}
      description="A lowered quota removes nothing. Empty fields have the default of the platform."
    >
      <Form name={`quotas ${organisation.id}`} submitLabel="Save" onSubmit={save} actions={<CancelButton />}>
        {resources.map(([name, label, max]) => (
          <TextField
            key={name}
            name={name}
            label={label}
            type="number"
            min={0}
            max={max}
            step={1}
            defaultValue={organisation.quotas[name] ?? ''}
            isOptional
          />
        ))}
      </Form>
    </Dialog>
  )
}
