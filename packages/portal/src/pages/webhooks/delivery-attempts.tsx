import type { Schemas } from '../../api/client.ts'
import { Time } from '../../ui/time.tsx'
import styles from './webhooks.module.css'

type Delivery = Schemas['Delivery']
type Attempt = Delivery['attempts'][number]

const reasons: Readonly<Record<NonNullable<Attempt['error']>, string>> = {
  url_not_allowed: 'address not allowed',
  address_not_allowed: 'private address',
  name_not_resolved: 'host not found',
  certificate_not_trusted: 'untrusted certificate',
  connection_failed: 'no connection',
  timed_out: 'timed out',
  redirected: 'led elsewhere',
  unsuccessful_status: 'refused',
}

const shownAttempts = 3

/** The latest attempts of a delivery, newest last. */
export function DeliveryAttempts({ delivery: { attempts, nextAttemptAt } }: { delivery: Delivery }) {
  const earlier = attempts.length - shownAttempts
  if (attempts.length === 0 && nextAttemptAt === undefined) return 'None'
  return (
    <ol className={styles['attempts']}>
      {earlier > 0 && <li>{earlier} earlier</li>}
      {attempts.slice(-shownAttempts).map((attempt) => (
        <li key={attempt.at}>{wordsFor(attempt)}</li>
      ))}
      {nextAttemptAt !== undefined && (
        <li>
          Next <Time at={nextAttemptAt} />
        </li>
      )}
    </ol>
  )
}

function wordsFor({ statusCode, error, durationMs }: Attempt): string {
  const reason = error && reasons[error]
  const outcome = [statusCode, reason].filter((word) => word !== undefined).join(', ')
  return `${outcome} in ${durationMs.toLocaleString()} ms`
}
