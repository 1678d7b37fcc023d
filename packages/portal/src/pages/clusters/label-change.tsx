import { isDerivedKey, isLabelKey, isLabelValue, keyRule, valueRule } from '@platform/contract/selector'
import { Plus, Trash2, X } from 'lucide-react'
import { incompleteError } from '../../api/api-error.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { CompletionField } from '../../ui/completion-field.tsx'
import { useDraft } from '../../ui/draft.ts'
import styles from './clusters.module.css'
import { type Labels, useKnownLabels } from './label-queries.ts'
import { keyCompletions, labelText, valueCompletions } from './selector-completions.ts'

/** The new values of labels by key. Null removes a label. */
export type LabelChange = Record<string, string | null>

/** Returns the labels that a change sets. */
export const labelsSetBy = (change: LabelChange): Record<string, string> =>
  Object.fromEntries(Object.entries(change).filter((entry): entry is [string, string] => entry[1] !== null))

/** Manages the state of a form that changes labels. */
export function useLabelChange() {
  const [change, setChange] = useDraft<LabelChange>('label changes', {})
  const [key, setKey] = useDraft('label key', '')
  const [value, setValue] = useDraft('label value', '')
  const problem = problemOf(key.trim(), value.trim())
  const put = (name: string, nextValue: string | null): LabelChange => {
    const nextChange = { ...change, [name]: nextValue }
    setChange(nextChange)
    // A label that is being entered is kept while another one is removed.
    if (name === key.trim()) {
      setKey('')
      setValue('')
    }
    return nextChange
  }
  const forget = (name: string) =>
    setChange(Object.fromEntries(Object.entries(change).filter(([each]) => each !== name)))
  /** Adds a label that was entered but not added, and returns the change. Throws `ApiError` if the label is invalid. */
  const complete = (): LabelChange => {
    if (key.trim() === '') return change
    if (problem !== undefined) throw incompleteError(problem)
    return put(key.trim(), value.trim())
  }
  return { change, key, setKey, value, setValue, problem, put, forget, complete }
}

type LabelEdit = ReturnType<typeof useLabelChange>

function problemOf(key: string, value: string): string | undefined {
  if (key === '') return undefined
  if (!isLabelKey(key)) return `The key ${keyRule}.`
  if (isDerivedKey(key)) return 'The platform sets labels with this key.'
  return isLabelValue(value) ? undefined : `The value ${valueRule}.`
}

interface FieldsProps {
  edit: LabelEdit
  /** The labels of the cluster; undefined if the change applies to several clusters. */
  before?: Labels
}

export const LabelChangeFields = ({ edit, before }: FieldsProps) => (
  <>
    {before === undefined ? <Changes edit={edit} /> : <Result edit={edit} before={before} />}
    <NewLabel edit={edit} isForMany={before === undefined} />
  </>
)

// The labels that the cluster will have.
function Result({ edit: { change, put }, before }: { edit: LabelEdit; before: Labels }) {
  const after = Object.entries(labelsSetBy({ ...before, ...change }))
  if (after.length === 0) return <p className={styles['quiet']}>No labels.</p>
  return (
    <ul aria-label="Labels" className={styles['chips']}>
      {after.map(([key, value]) => (
        <li key={key} className={styles['removable']}>
          <Badge variant={change[key] === undefined ? 'quiet' : 'busy'}>{labelText(key, value)}</Badge>
          <IconButton label={`Remove label ${key}`} icon={X} onClick={() => put(key, null)} />
        </li>
      ))}
    </ul>
  )
}

function Changes({ edit: { change, forget } }: { edit: LabelEdit }) {
  return (
    <ul aria-label="Changes" className={styles['chips']}>
      {Object.entries(change).map(([key, value]) => (
        <li key={key} className={styles['removable']}>
          <Badge variant={value === null ? 'bad' : 'good'}>
            {value === null ? `Remove ${key}` : `Set ${labelText(key, value)}`}
          </Badge>
          <IconButton label={`Undo change of ${key}`} icon={X} onClick={() => forget(key)} />
        </li>
      ))}
    </ul>
  )
}

function NewLabel({ edit, isForMany }: { edit: LabelEdit; isForMany: boolean }) {
  const { key, value, problem, put, setKey, setValue } = edit
  const knownLabels = useKnownLabels(true).filter((label) => !isDerivedKey(label.key))
  const name = key.trim()
  const isReady = name !== '' && problem === undefined
  return (
    <>
      <div className={styles['labelFields']}>
        <CompletionField
          name="labelKey"
          label="Key"
          value={key}
          onChange={setKey}
          maxLength={63}
          completions={keyCompletions('', key, knownLabels)}
          status={problem}
          isInvalid={problem !== undefined}
        />
        <CompletionField
          name="labelValue"
          label="Value"
          value={value}
          onChange={setValue}
          maxLength={63}
          completions={valueCompletions('', name, value, knownLabels)}
        />
      </div>
      <div className={styles['buttons']}>
        <Button icon={Plus} disabled={!isReady} onClick={() => put(name, value.trim())}>
          {isForMany ? 'Set label' : 'Add label'}
        </Button>
        {isForMany && (
          <Button icon={Trash2} disabled={!isReady} onClick={() => put(name, null)}>
            Remove label
          </Button>
        )}
      </div>
    </>
  )
}
