import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { oneOfIn } from '../../lib/search.ts'
import { NewSecret } from '../../ui/copy.tsx'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { useDraft } from '../../ui/draft.ts'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { clusterTypes } from './cluster-filter.ts'
import { typeNames } from './cluster-queries.ts'
import { LabelChangeFields, labelsSetBy, useLabelChange } from './label-change.tsx'
import { SiteField } from './sites.tsx'

export const enrollmentKeysKey = ['enrollment-keys']

type CreatedKey = Schemas['CreatedEnrollmentKey']

/** Creates an enrollment key and shows its command, which the platform returns only once. */
export function NewEnrollmentKeyDialog({ onClose }: { onClose: () => void }) {
  const [createdKey, setCreatedKey] = useState<CreatedKey>()
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={createdKey === undefined ? 'Create enrollment key' : `Enrollment key ${createdKey.name}`}
    >
      {createdKey === undefined ? (
        <KeyForm onCreated={setCreatedKey} />
      ) : (
        <NewSecret
          advice="Run this on each machine. It contains the key, which is not shown again."
          label="Relay command"
          text={createdKey.relayCommand}
          onDone={onClose}
        />
      )}
    </Dialog>
  )
}

const dayMs = 86_400_000
const lifetimes = [1, 7, 30, 90, 365].map((days) => ({
  value: String(days),
  label: days === 1 ? 'In a day' : days === 365 ? 'In a year' : `In ${days} days`,
}))

// The clock of the browser may be ahead, and the platform rejects an expiry beyond the maximum.
const clockToleranceMs = 300_000

function KeyForm({ onCreated }: { onCreated: (key: CreatedKey) => void }) {
  const queries = useQueryClient()
  const [siteId, setSiteId] = useDraft('site', '')
  const [requireApproval, setRequireApproval] = useDraft('approval', false)
  const edit = useLabelChange()
  const create = async (values: FormValues) => {
    const { name = '', nameTemplate = '', maxUses, days } = values
    const body = {
      name: name.trim(),
      type: oneOfIn(values, 'type', clusterTypes) ?? ('Hypervisor' as const),
      ...(siteId && { siteId }),
      labels: labelsSetBy(edit.complete()),
      maxUses: Number(maxUses),
      requireApproval,
      ...(nameTemplate.trim() !== '' && { nameTemplate: nameTemplate.trim() }),
      expiresAt: new Date(Date.now() + Number(days) * dayMs - clockToleranceMs).toISOString(),
    }
    onCreated(await unwrap(api.POST('/api/v1/enrollment-keys', { body })))
    await queries.invalidateQueries({ queryKey: enrollmentKeysKey })
  }
  return (
    <Form submitLabel="Create" onSubmit={create} actions={<CancelButton />}>
      <TextField name="name" label="Name" maxLength={100} placeholder="Edge sites 2026" required />
      <TextField
        name="maxUses"
        label="Maximum number of relays"
        type="number"
        min={1}
        max={100_000}
        defaultValue="100"
        required
      />
      <SelectField name="days" label="Expires" options={lifetimes} defaultValue="7" />
      <TextField
        name="nameTemplate"
        label="Names of the clusters"
        hint="{hostname} is replaced by the name of the machine. A name in use gets -2, -3 and so on."
        placeholder="{hostname}"
        maxLength={64}
        isOptional
        isMono
      />
      <SelectField
        name="type"
        label="Type"
        options={clusterTypes.map((type) => ({ value: type, label: typeNames[type] }))}
      />
      <SiteField value={siteId} onChange={setSiteId} />
      <LabelChangeFields edit={edit} before={{}} />
      <CheckField
        label="Each cluster needs approval"
        hint="Its relay receives no jobs until then."
        checked={requireApproval}
        onChange={setRequireApproval}
      />
    </Form>
  )
}
