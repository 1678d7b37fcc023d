import { CircleAlert, CircleCheck, X } from 'lucide-react'
import { IconButton } from '../../ui/button.tsx'
import { classes } from '../../ui/class-names.ts'
import styles from './identity.module.css'
import type { Provider } from './provider-types.ts'

interface ConsentNoteProps {
  /** From the URL, which may be forged. Only known values are shown. */
  consent: string
  error: string | undefined
  provider: Provider | undefined
  onDismiss: () => void
}

const reasons: Readonly<Record<string, string>> = {
  tenant_mismatch: 'The response came from another tenant than the configured one.',
  issuer_mismatch: 'The response came from another provider.',
  provider_changed: 'The client ID changed during the request. Request consent again.',
  provider_error: 'The provider rejected the request. Test it and check its logs.',
  provider_unknown: 'The response does not belong to a provider of this organisation.',
  incomplete: 'The response was incomplete. Request consent again.',
}

const unknownReason = 'Request consent again. If it persists, check the audit trail.'

export function ConsentNote({ consent, error, provider, onDismiss }: ConsentNoteProps) {
  const isGranted = consent === 'granted' && !isContradicted(consent, provider)
  const Icon = isGranted ? CircleCheck : CircleAlert
  return (
    <div
      role={isGranted ? 'status' : 'alert'}
      className={classes(styles['note'], isGranted ? styles['good'] : styles['bad'])}
    >
      <Icon size={18} aria-hidden />
      <p>{resultText(consent, error, provider)}</p>
      <IconButton label="Dismiss" icon={X} onClick={onDismiss} />
    </div>
  )
}

function resultText(consent: string, error: string | undefined, provider: Provider | undefined): string {
  const name = provider?.displayName ?? 'The provider'
  if (isContradicted(consent, provider)) return `${name}: this result is outdated. See the status below.`
  if (consent === 'granted') {
    const isOff = provider?.status === 'Disabled'
    return `${name} granted consent${isOff ? ' but is disabled here' : '. Users can sign in with it'}.`
  }
  if (consent === 'denied') return `${name} denied consent. Request it again after its administrator has agreed.`
  const reason = error !== undefined && Object.hasOwn(reasons, error) ? reasons[error] : unknownReason
  return `The consent request failed. ${reason}`
}

// The URL is outdated or forged if the stored status of the provider differs.
function isContradicted(consent: string, provider: Provider | undefined): boolean {
  if (consent !== 'granted' && consent !== 'denied') return false
  const status = consent === 'granted' ? 'ConsentGranted' : 'ConsentDenied'
  return provider?.status !== status && provider?.status !== 'Disabled'
}
