import { CircleCheck, CircleX, ListChecks, ShieldQuestion, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { ApiError } from '../../api/api-error.ts'
import { api, expectNoBody, type Schemas, unwrap } from '../../api/client.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { showToast } from '../../ui/toast.tsx'
import styles from './identity.module.css'
import type { Provider } from './provider-types.ts'
import { refreshProviders } from './providers.tsx'

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
  const requestConsent = () =>
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
          <Button icon={ShieldQuestion} isBusy={busy === 'consent'} onClick={() => void requestConsent()}>
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
        description="Its users remain but can no longer sign in. Their sessions end within a minute; their API tokens stop working immediately. Adding a provider with the same type and address restores access."
        confirmLabel="Remove provider"
        onConfirm={remove}
      />
    </div>
  )
}

// The address comes from the provider, so schemes other than https are rejected.
function openSafely(url: string): void {
  if (URL.parse(url)?.protocol === 'https:') return location.assign(url)
  const message = 'The provider’s consent address does not use https, so it was not opened.'
  throw new ApiError(0, { error: 'consent_url_not_https', message })
}

const checkTitles: Readonly<Record<string, string>> = {
  discovery: 'Discovery',
  issuer: 'Issuer',
  endpoints: 'Addresses',
  algorithms: 'Algorithms',
  keys: 'Keys',
  client: 'Client',
  clock: 'Clock',
  connect: 'Connection',
  tls: 'Encryption',
  bind: 'Service account',
  search: 'User search',
  groups: 'Groups',
}

const TestOutcome = ({ outcome: { ok, checks } }: { outcome: Schemas['IdentityProviderTest'] }) => (
  <div className={styles['outcome']}>
    <p>
      <strong>{ok ? 'The provider works.' : 'The provider does not work yet.'}</strong>
    </p>
    <ul aria-label="Checks" className={styles['checks']}>
      {checks.map(({ name, ok: isGood, message }) => (
        <li key={name}>
          <Badge variant={isGood ? 'good' : 'bad'} icon={isGood ? CircleCheck : CircleX}>
            {isGood ? 'Passed' : 'Failed'}
          </Badge>
          <span>
            <strong>{(Object.hasOwn(checkTitles, name) && checkTitles[name]) || name}</strong>: {message}
          </span>
        </li>
      ))}
    </ul>
  </div>
)
