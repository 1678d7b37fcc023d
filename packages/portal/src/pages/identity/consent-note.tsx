import { CircleAlert, CircleCheck, X } from 'lucide-react'
import { IconButton } from '../../ui/button.tsx'
import { classes } from '../../ui/class-names.ts'
import styles from './identity.module.css'
import type { Provider } from './provider-types.ts'

interface ConsentNoteProps {
  /** The words that the platform leads back here with. An address is anybody's: no other words are shown. */
  consent: string
  error: string | undefined
  provider: Provider | undefined
  onDismiss: () => void
}

const reasons: Readonly<Record<string, string>> = {
  tenant_mismatch: 'Another tenant has answered than the one that is configured here.',
  issuer_mismatch: 'Another provider has answered than the one that was asked.',
  provider_changed: 'The client id was changed while the answer was waited for. Ask again.',
  provider_error: 'The provider could not take the request. Test it, and look at its own messages.',
  provider_unknown: 'The answer names no provider of this organisation.',
  incomplete: 'The answer was not complete. Ask again.',
}

const otherwise = 'Ask again; if it goes on, look at the audit trail.'

/** What came of asking for consent. */
export function ConsentNote({ consent, error, provider, onDismiss }: ConsentNoteProps) {
  const isGood = consent === 'granted' && !isBelied(consent, provider)
  const Icon = isGood ? CircleCheck : CircleAlert
  return (
    <div
      role={isGood ? 'status' : 'alert'}
      className={classes(styles['note'], isGood ? styles['good'] : styles['bad'])}
    >
      <Icon size={18} aria-hidden />
      <p>{wordsFor(consent, error, provider)}</p>
      <IconButton label="Dismiss" icon={X} onClick={onDismiss} />
    </div>
  )
}

function wordsFor(consent: string, error: string | undefined, provider: Provider | undefined): string {
  const who = provider?.displayName ?? 'The provider'
  if (isBelied(consent, provider))
    return `${who}: the platform knows of no such answer. What holds is the status below.`
  if (consent === 'granted') {
    const isOff = provider?.status === 'Disabled'
    return `${who} has given consent${isOff ? ', and is switched off here' : ': people can sign in with it'}.`
  }
  if (consent === 'denied') return `${who} has denied consent. Ask again once its operator has agreed.`
  const reason = error !== undefined && Object.hasOwn(reasons, error) ? reasons[error] : otherwise
  return `Consent was asked for in vain. ${reason}`
}

/** Whether the platform says otherwise: an old address, or one that somebody has made up. */
function isBelied(consent: string, provider: Provider | undefined): boolean {
  if (consent !== 'granted' && consent !== 'denied') return false
  const status = consent === 'granted' ? 'ConsentGranted' : 'ConsentDenied'
  return provider?.status !== status && provider?.status !== 'Disabled'
}
