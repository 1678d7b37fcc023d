import { ListChecks, ShieldQuestion, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { api, unwrap, type Schemas, expectNoBody } from '../../api/client.ts'
import { ApiError } from '../../api/api-error.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { showToast } from '../../ui/toast.tsx'
import styles from './identity.module.css'
import type { Provider } from './provider-types.ts'
import { TestOutcome } from './test-outcome.tsx'
import { refreshProviders } from './use-providers.ts'

interface ProviderActionsProps {
  provider: Provider
  onRemoved: () => void
}

export function ProviderActions({ provider: { id, type, displayName }, onRemoved }: ProviderActionsProps) {
  const [busy, setBusy] = useState<'test' | 'consent'>()
  const [outcome, setOutcome] = useState<Schemas['IdentityProviderTest']>()
  const [failure, setFailure] = useState<unknown>()
  const [isRemoving, setIsRemoving] = useState(false)
  const params = { path: { id } }
  const run = async (name: 'test' | 'consent', work: () => Promise<void>) => {
    setBusy(name)
    setFailure(undefined)
    setOutcome(undefined)
    await work().catch(setFailure)
    setBusy(undefined)
  }
  const test = () =>
    run('test', async () =>
      setOutcome(await unwrap(api.POST('/api/v1/platform/identity/providers/{id}/test', { params }))),
    )
  const askForConsent = () =>
    run('consent', async () => {
      const { url } = await unwrap(api.POST('/api/v1/platform/identity/providers/{id}/consent', { params }))
      await refreshProviders()
      openSafely(url)
    })
  const remove = async () => {
    await expectNoBody(api.DELETE('/api/v1/platform/identity/providers/{id}', { params }))
    showToast(`${displayName} was removed`)
    onRemoved()
    await refreshProviders()
  }
  return (
    <div className={styles['stack']}>
      <div className={styles['actions']}>
        <Button icon={ListChecks} isBusy={busy === 'test'} onClick={() => void test()}>
          Test provider
        </Button>
        {type !== 'LDAP' && (
          <Button icon={ShieldQuestion} isBusy={busy === 'consent'} onClick={() => void askForConsent()}>
            Request consent
          </Button>
        )}
        <Button icon={Trash2} onClick={() => setIsRemoving(true)}>
          Remove provider
        </Button>
      </div>
      {failure !== undefined && <ErrorNote error={failure} />}
      <div role="status">{outcome !== undefined && <TestOutcome outcome={outcome} />}</div>
      <Confirm
        isOpen={isRemoving}
        onClose={() => setIsRemoving(false)}
        title={`Remove ${displayName}?`}
        description="Its users remain but can no longer sign in. Their sessions end within 15 minutes; their API tokens stop working immediately. Adding a provider with the same type and address restores access."
        confirmLabel="Remove provider"
        onConfirm={remove}
      />
    </div>
  )
}

/** Opens the provider's consent page over https only. */
function openSafely(url: string): void {
  if (URL.parse(url)?.protocol === 'https:') return location.assign(url)
  const message = 'The provider’s consent address does not use https, so it was not opened.'
  throw new ApiError(0, { error: 'consent_url_not_https', message })
}
