import type { Schemas } from '../../api/client.ts'
import { Time } from '../../ui/time.tsx'
import styles from './webhooks.module.css'

type Delivery = Schemas['Delivery']
type Attempt = Delivery['attempts'][number]

const reasons: Readonly<Record<NonNullable<Attempt['error']>, string>> = {
  url_not_allowed: 'the address may not be called',
  address_not_allowed: 'the address is private',
  name_not_resolved: 'the name leads nowhere',
  certificate_not_trusted: 'the certificate is not trusted',
  connection_failed: 'no connection',
  timed_out: 'no answer in time',
  redirected: 'led elsewhere',
  unsuccessful_status: 'refused',
}

const shownAttempts = 3

/** What became of an event each time that it was sent: the newest of them, the newest last. */
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
