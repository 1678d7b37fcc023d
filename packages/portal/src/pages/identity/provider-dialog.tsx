import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { DescriptionList } from '../../ui/card.tsx'
import { CopyField } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Time } from '../../ui/time.tsx'
import { showToast } from '../../ui/toast.tsx'
import styles from './identity.module.css'
import { ProviderActions } from './provider-actions.tsx'
import { ProviderForm } from './provider-form.tsx'
import { type Provider, type ProviderRequest, providerTypeSpecs } from './provider-types.ts'
import { ProviderStatus, refreshProviders } from './providers.tsx'
import { valueText } from './request.ts'

export const ProviderDialog = ({ provider, onClose }: { provider: Provider | undefined; onClose: () => void }) => (
  <Dialog isOpen={provider !== undefined} onClose={onClose} title={provider?.displayName ?? 'Identity provider'} isWide>
    {provider !== undefined && <ProviderView key={provider.id} provider={provider} onClose={onClose} />}
  </Dialog>
)

function ProviderView({ provider, onClose }: { provider: Provider; onClose: () => void }) {
  // A new key remounts the form, which then shows the saved values.
  const [saveCount, setSaveCount] = useState(0)
  const { type, displayName, status, createdAt, updatedAt, lastFailure } = provider
  const change = async (body: ProviderRequest) => {
    await unwrap(api.POST('/api/v1/platform/identity/providers', { body }))
    await refreshProviders()
    setSaveCount(saveCount + 1)
    showToast(`${body.displayName ?? displayName} was changed`)
  }
  return (
    <div className={styles['stack']}>
      <DescriptionList
        items={[
          ['Type', providerTypeSpecs[type].label],
          ...providerTypeSpecs[type].identifying.map(
            ({ name, label }) => [label, <code key={name}>{valueText(provider, name)}</code>] as const,
          ),
          ['Status', <ProviderStatus key="s" status={status} />],
          ['Added', <Time key="a" at={createdAt} />],
          ['Changed', <Time key="c" at={updatedAt} />],
          ...(lastFailure === undefined ? [] : [['Last failure', <LastFailure key="f" {...lastFailure} />] as const]),
        ]}
      />
      <Redirects provider={provider} />
      <ProviderActions provider={provider} onRemoved={onClose} />
      <h3>Settings</h3>
      <ProviderForm key={saveCount} type={type} before={provider} submitLabel="Save changes" onSubmit={change} />
    </div>
  )
}

const problems: Record<NonNullable<Provider['lastFailure']>['problem'], string> = {
  unreachable: 'Unreachable',
  answer_invalid: 'Error or invalid response',
  groups_incomplete: 'Incomplete groups',
}

const LastFailure = ({ problem, detail, at }: NonNullable<Provider['lastFailure']>) => (
  <>
    <Time at={at} />: {problems[problem]}. {detail}
  </>
)

const Redirects = ({ provider: { redirectUri, consentRedirectUri } }: { provider: Provider }) =>
  redirectUri !== undefined && (
    <section aria-label="Redirect addresses" className={styles['stack']}>
      <h3>Register with the provider</h3>
      <p className={styles['hint']}>
        The provider redirects to the first URI after sign-in and to the second after consent.
      </p>
      <CopyField label="Redirect URI" text={redirectUri} />
      {consentRedirectUri !== undefined && <CopyField label="Redirect URI for consent" text={consentRedirectUri} />}
    </section>
  )
