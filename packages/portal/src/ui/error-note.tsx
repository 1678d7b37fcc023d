import { CircleAlert, RotateCw } from 'lucide-react'
import { ApiError } from '../api/api-error.ts'
import { Button } from './button.tsx'
import { CopyButton } from './copy.tsx'
import styles from './error-note.module.css'

/** An error message with the trace id of the request. */
export function ErrorNote({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const apiError = error instanceof ApiError ? error : undefined
  const {
    message = 'The portal failed unexpectedly. Reload the page and try again.',
    traceId,
    details = [],
  } = apiError ?? {}
  return (
    <div role="alert" className={styles['note']}>
      <p className={styles['headline']}>
        <CircleAlert size={18} aria-hidden />
        <span>{message}</span>
      </p>
      {details.length > 0 && (
        <ul className={styles['details']}>
          {details.map(({ path, message: text }) => (
            <li key={path + text}>
              <code>{path}</code> {text}
            </li>
          ))}
        </ul>
      )}
      {(traceId !== undefined || onRetry) && (
        <div className={styles['foot']}>
          {traceId !== undefined && (
            <>
              <span>
                Trace id <code>{traceId}</code>
              </span>
              <CopyButton text={traceId} label="Copy trace id" />
            </>
          )}
          {onRetry && (
            <Button icon={RotateCw} onClick={onRetry}>
              Try again
            </Button>
          )}
        </div>
      )}
    </div>
  )
}
