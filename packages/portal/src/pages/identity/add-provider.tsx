import { ApiError } from '../../api/api-error.ts'
import { api, unwrap } from '../../api/client.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { useDraft } from '../../ui/draft.ts'
import { SelectField } from '../../ui/field.tsx'
import { showToast } from '../../ui/toast.tsx'
import { ProviderForm } from './provider-form.tsx'
import { type Provider, type ProviderRequest, providerTypes, providerTypeSpecs } from './provider-types.ts'
import { refreshProviders } from './providers.tsx'
import { findDuplicate } from './request.ts'

interface AddProviderProps {
  providers: readonly Provider[]
  onClose: () => void
  onAdded: (id: string) => void
}

/**
 * Adds a provider. A duplicate is rejected, because the API would overwrite the existing provider and drop omitted
 * settings.
 */
export function AddProvider({ providers, onClose, onAdded }: AddProviderProps) {
  const [type, setType] = useDraft<Provider['type']>('type', 'OIDC')
  const choose = (value: string) => setType(providerTypes.find((each) => each === value) ?? type)
  const add = async (request: ProviderRequest) => {
    const duplicate = findDuplicate(request, providers)
    if (duplicate !== undefined) throw duplicateError(duplicate)
    const { id, displayName } = await unwrap(api.POST('/api/v1/platform/identity/providers', { body: request }))
    await refreshProviders()
    showToast(`${displayName} was added`)
    onAdded(id)
  }
  return (
    <Dialog isOpen onClose={onClose} title="Add an identity provider" isWide>
      <SelectField
        name="type"
        label="Type"
        value={type}
        options={providerTypes.map((each) => ({ value: each, label: providerTypeSpecs[each].label }))}
        onChange={choose}
      />
      <ProviderForm key={type} type={type} submitLabel="Add provider" onSubmit={add} />
    </Dialog>
  )
}

const duplicateError = ({ displayName }: Provider): ApiError =>
  new ApiError(0, {
    error: 'provider_exists',
    message: `${displayName} already uses this address. Edit it instead.`,
  })
