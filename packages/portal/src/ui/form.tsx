import { Form as Base } from '@base-ui/react/form'
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { ApiError } from '../api/api-error.ts'
import { Button } from './button.tsx'
import { ErrorNote } from './error-note.tsx'
import styles from './field.module.css'
import { showErrorToast } from './toast.tsx'

/** What the fields of a form hold, by their names. Of a checkbox that is not checked there is nothing. */
export type FormValues = Record<string, string>

interface FormProps {
  /** Sends what was filled in. What it throws is shown: beside the fields that it is about, or below them all. */
  onSubmit: (values: FormValues) => Promise<unknown>
  submitLabel: string
  children: ReactNode
  /** Further buttons, before the one that submits. */
  actions?: ReactNode
  look?: 'primary' | 'danger'
  /** What went wrong before this form was shown: where several make one request. */
  failure?: unknown
}

/** A form that is sent to the platform. It cannot be sent twice at a time, and keeps what was typed when it is refused. */
export function Form({ onSubmit, submitLabel, children, actions, look = 'primary', failure: before }: FormProps) {
  const [failure, setFailure] = useState(before)
  const [isBusy, setIsBusy] = useState(false)
  // Whoever corrects a field makes what was said of it void: the same object must not be said again.
  const errors = useMemo(() => fieldErrors(failure), [failure])
  const isShown = useRef(false)
  useEffect(() => {
    isShown.current = true
    return () => void (isShown.current = false)
  }, [])

  const submit = async (values: FormValues) => {
    if (isBusy) return
    setIsBusy(true)
    setFailure(undefined)
    try {
      await onSubmit(values)
    } catch (error) {
      // Its dialog may have been closed meanwhile.
      if (isShown.current) setFailure(error)
      else showErrorToast(`${submitLabel}: ${outcomeOf(error)}`, error)
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <Base className={styles['form']} errors={errors} onFormSubmit={(values) => void submit(values as FormValues)}>
      {children}
      {failure !== undefined && <ErrorNote error={failure} />}
      <div className={styles['actions']}>
        {actions}
        <Button type="submit" look={look} isBusy={isBusy}>
          {submitLabel}
        </Button>
      </div>
    </Base>
  )
}

/** What is known of what was to be done: where the platform has not said no itself, nothing. */
function outcomeOf(error: unknown): string {
  const isRefused = error instanceof ApiError && error.status >= 400 && error.status < 500
  return isRefused ? 'that was not done' : 'it may not have been done'
}

/** What the platform said of each field, by the first segment of its pointer. */
function fieldErrors(failure: unknown): Record<string, string> {
  if (!(failure instanceof ApiError)) return {}
  const named = failure.details.map(({ path, message }) => [path.split('/')[1] ?? '', message] as const)
  return Object.fromEntries(named.filter(([name]) => name !== ''))
}
