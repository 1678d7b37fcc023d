import { Form as Base } from '@base-ui/react/form'
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { ApiError } from '../api/api-error.ts'
import { Button } from './button.tsx'
import { useFormDraft, whileSubmitting } from './draft.ts'
import { ErrorNote } from './error-note.tsx'
import styles from './field.module.css'
import { scrollIntoView } from './hooks.ts'
import { showErrorToast } from './toast.tsx'

/** Values by field name. Unchecked checkboxes are missing. */
export type FormValues = Record<string, string>

interface FormProps {
  /**
   * Submits the values. A thrown error is shown at the affected fields or below the form. Returns `false` if nothing
   * was saved, for example because a value is missing or the user must first review the changes.
   */
  onSubmit: (values: FormValues) => Promise<unknown>
  submitLabel: string
  children: ReactNode
  /** Additional buttons before the submit button. */
  actions?: ReactNode
  variant?: 'primary' | 'danger'
  /** An initial error, if an earlier form of the same request caused it. */
  failure?: unknown
  /**
   * Whether the form asks before it discards unsaved input, and restores the input after a reload. The default is true.
   * `kept` also restores the input, without a question, when the user opens another page and returns.
   */
  hasDraft?: boolean | 'kept'
  /** Identifies the draft if the label of the submit button changes. */
  name?: string
}

/** A form that prevents duplicate submissions and keeps its values after an error. */
export function Form({
  onSubmit,
  submitLabel,
  children,
  actions,
  variant = 'primary',
  failure: initialFailure,
  hasDraft = true,
  name = submitLabel,
}: FormProps) {
  const [failure, setFailure] = useState(initialFailure)
  // The fields of the form show an initial error that names fields, so the error needs no note.
  const [isNoted, setIsNoted] = useState(() => Object.keys(fieldErrors(initialFailure)).length === 0)
  const [isBusy, setIsBusy] = useState(false)
  const { form, onChange, scope } = useFormDraft(name, hasDraft)
  // Editing a field clears its error. A new object for the same failure would show the error again.
  const errors = useMemo(() => fieldErrors(failure), [failure])
  const isMounted = useRef(false)
  useEffect(() => {
    isMounted.current = true
    return () => void (isMounted.current = false)
  }, [])

  const submit = async (values: FormValues) => {
    if (isBusy) return
    setIsBusy(true)
    setFailure(undefined)
    try {
      await whileSubmitting(hasDraft === false ? undefined : scope, () => onSubmit(values))
    } catch (error) {
      // The form may have been closed while the request was running.
      if (isMounted.current) {
        setIsNoted(!isAtFields(form.current, error))
        setFailure(error)
      } else showErrorToast(`${submitLabel}: ${outcomeOf(error)}`, error)
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <Base
      ref={form}
      className={styles['form']}
      errors={errors}
      onChange={onChange}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
        event.preventDefault()
        event.currentTarget.requestSubmit()
      }}
      onFormSubmit={(values) => void submit(values as FormValues)}
    >
      {children}
      {failure !== undefined && isNoted && (
        // The buttons of a long form could cover the note.
        <div ref={scrollIntoView}>
          <ErrorNote error={failure} />
        </div>
      )}
      <div className={styles['actions']}>
        {actions}
        <Button type="submit" variant={variant} isBusy={isBusy}>
          {submitLabel}
        </Button>
      </div>
    </Base>
  )
}

// An error that the fields show completely needs no note.
function isAtFields(form: HTMLFormElement | null, error: unknown): boolean {
  const names = Object.keys(fieldErrors(error))
  return names.length > 0 && names.every((name) => form?.elements.namedItem(name))
}

// Without a response it is unknown whether the request was executed.
function outcomeOf(error: unknown): string {
  const isRejected = error instanceof ApiError && error.status >= 400 && error.status < 500
  return isRejected ? 'failed' : 'outcome unknown'
}

// The first segment of an error's JSON pointer is the name of the field.
function fieldErrors(failure: unknown): Record<string, string> {
  if (!(failure instanceof ApiError)) return {}
  const named = failure.details.map(({ path, message }) => [path.split('/')[1] ?? '', message] as const)
  return Object.fromEntries(named.filter(([name]) => name !== ''))
}
