import { CircleAlert, RotateCw } from 'lucide-react'
import { ApiError } from '../api/api-error.ts'
import { Button } from './button.tsx'
import { CopyButton } from './copy.tsx'
import styles from './error-note.module.css'

/** An error message. Paths of fields and the trace id, which support needs, are folded away. */
export function ErrorNote({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const apiError = error instanceof ApiError ? error : undefined
  const {
    message = 'The portal failed unexpectedly. Reload the page and try again.',
    traceId,
    details = [],
  } = apiError ?? {}
  const reasons = details.filter((detail) => detail.message !== message)
  return (
    <div role="alert" className={styles['note']}>
      <p className={styles['headline']}>
        <CircleAlert size={18} aria-hidden />
        <span>{message}</span>
      </p>
      {(traceId !== undefined || reasons.length > 0) && (
        <details className={styles['details']}>
          <summary>Details</summary>
          {reasons.length > 0 && (
            <ul>
              {reasons.map(({ path, message: text }) => (
                <li key={path + text}>
                  <code>{path}</code> {text}
                </li>
              ))}
            </ul>
          )}
          {traceId !== undefined && (
            <p className={styles['foot']}>
              <span>
                Trace id <code>{traceId}</code>
              </span>
              <CopyButton text={traceId} label="Copy trace id" />
            </p>
          )}
        </details>
      )}
      {onRetry && (
        <div className={styles['foot']}>
          <Button icon={RotateCw} onClick={onRetry}>
            Try again
          </Button>
        </div>
      )}
    </div>
  )
}
