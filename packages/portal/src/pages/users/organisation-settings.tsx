import { useQuery, useQueryClient } from '@tanstack/react-query'
import { organisationSettingsQuery } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { Loaded } from '../../ui/state.tsx'
import { showToast } from '../../ui/toast.tsx'

export function OrganisationSettings({ onClose }: { onClose: () => void }) {
  const query = useQuery(organisationSettingsQuery)
  const queries = useQueryClient()
  const save = async ({ max = '', byDefault = '', jobs = '' }: FormValues) => {
    const body = {
      maxTokenLifetimeDays: daysOf(max),
      defaultTokenLifetimeDays: daysOf(byDefault),
      jobRetentionDays: Number(jobs),
    }
    const settings = await unwrap(api.PATCH('/api/v1/organisation/settings', { body }))
    queries.setQueryData(organisationSettingsQuery.queryKey, settings)
    showToast('Settings saved')
    onClose()
  }
  return (
    <Dialog isOpen onClose={onClose} title="Settings of the organisation">
      <Loaded query={query} what="the settings">
        {({ maxTokenLifetimeDays, defaultTokenLifetimeDays, jobRetentionDays }) => (
          <Form submitLabel="Save" onSubmit={save} actions={<CancelButton />}>
            <TextField
              name="jobs"
              label="Keep ended jobs for (days)"
              type="number"
              min={1}
              max={3650}
              step={1}
              defaultValue={jobRetentionDays}
              hint="Older jobs are removed with their output."
            />
            <DaysField
              name="max"
              label="Maximum lifetime of API tokens (days)"
              value={maxTokenLifetimeDays}
              hint="For tokens that are created from now on. Empty for no maximum."
            />
            <DaysField
              name="byDefault"
              label="Default lifetime of API tokens (days)"
              value={defaultTokenLifetimeDays}
              hint="For tokens that are created without an expiry. Empty for no expiry."
            />
          </Form>
        )}
      </Loaded>
    </Dialog>
  )
}

const daysOf = (text: string): number | null => (text === '' ? null : Number(text))

function DaysField({ value, ...field }: { name: string; label: string; hint: string; value: number | null }) {
  return <TextField {...field} type="number" min={1} max={3650} step={1} defaultValue={value ?? ''} isOptional />
}
