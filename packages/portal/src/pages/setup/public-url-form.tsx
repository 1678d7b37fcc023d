import { useSuspenseQuery } from '@tanstack/react-query'
import { configurationQuery } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'
import { errorOf } from './setup-form.ts'
import { isTrialAddress } from './trial-address.ts'

async function save(values: Record<string, string>): Promise<void> {
  const body = { publicUrl: values['publicUrl']?.trim() ?? '' }
  const settings = await unwrap(api.PATCH('/api/v1/platform/settings', { body }))
  // The platform caches the configuration for a minute.
  queries.setQueryData(configurationQuery.queryKey, (before) => before && { ...before, ...settings })
  void queries.invalidateQueries({ queryKey: ['identity-providers'] })
  showToast('Public address saved', 'Register the new redirect addresses at your identity providers.')
}

/** Changes the public address. Requires the permission `platform:admin`. */
export function PublicUrlForm() {
  const { publicUrl = '' } = useSuspenseQuery(configurationQuery).data
  return (
    <Form name="public-url" submitLabel="Save address" onSubmit={save}>
      <TextField
        name="publicUrl"
        label="Public address"
        hint="The https address of this portal. Redirect addresses of identity providers begin with it."
        defaultValue={isTrialAddress(publicUrl) ? '' : publicUrl}
        placeholder="https://platform.example.com"
        check={errorOf.publicUrl}
        inputMode="url"
        maxLength={500}
        spellCheck={false}
      />
    </Form>
  )
}
