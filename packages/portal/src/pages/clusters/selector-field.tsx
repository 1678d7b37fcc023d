import { maxSelectorLength, parseSelector, SelectorError } from '@platform/contract/selector'
import { useState } from 'react'
import { CompletionField } from '../../ui/completion-field.tsx'
import { useDebounced } from '../../ui/hooks.ts'
import styles from './clusters.module.css'
import { useKnownLabels, useResolved } from './label-queries.ts'
import { clusterCountText, selectorCompletions } from './selector-completions.ts'

/** Returns the error of a selector, or undefined if it is valid. */
export function selectorError(text: string): SelectorError | undefined {
  try {
    parseSelector(text)
    return undefined
  } catch (error) {
    if (error instanceof SelectorError) return error
    throw error
  }
}

interface SelectorFieldProps {
  value: string
  onChange: (selector: string) => void
  onEnter?: () => void
  onBlur?: () => void
  /** Whether the matches are shown before the field is focused. */
  isCounted?: boolean
  /** Shown instead of the matches, or after them. */
  hint?: string
}

/** A field for a label selector. While the user types, it shows the matches, or the error at its position. */
export function SelectorField({ value, isCounted = false, hint = '', ...props }: SelectorFieldProps) {
  const [isUsed, setIsUsed] = useState(false)
  const knownLabels = useKnownLabels(isUsed)
  const text = value.trim()
  const error = text === '' ? undefined : selectorError(value)
  // An unfinished selector is shown as an error only after a pause in typing.
  const isPaused = useDebounced(value) === value
  const shownError = isPaused ? error : undefined
  return (
    <CompletionField
      {...props}
      name="selector"
      label="Label selector"
      value={value}
      placeholder="env=prod,tier in (web,api),!legacy"
      maxLength={maxSelectorLength}
      completions={selectorCompletions(value, knownLabels)}
      onFocus={() => setIsUsed(true)}
      isInvalid={shownError !== undefined}
      status={
        shownError === undefined ? (
          <Matches
            selector={(isUsed || isCounted) && text !== '' && error === undefined ? value : undefined}
            hint={hint}
          />
        ) : (
          <Problem text={value} error={shownError} />
        )
      }
    />
  )
}

const Problem = ({ text, error: { message, position } }: { text: string; error: SelectorError }) => (
  <>
    {message}
    <br />
    <code aria-hidden className={styles['problem']}>
      {text.slice(0, position - 1)}
      <mark>{text.slice(position - 1) || ' '}</mark>
    </code>
  </>
)

function Matches({ selector, hint }: { selector: string | undefined; hint: string }) {
  const { data, error } = useResolved(selector === undefined ? undefined : { selector })
  if (selector === undefined) return hint
  if (error !== null) return 'The matches could not be counted.'
  if (data === undefined) return 'Counting matches …'
  return `${matchText(data)} ${hint}`
}

/** Returns the number of clusters and the names of the first ones, as text. */
export function matchText({ resolvedCount, names }: { resolvedCount: number; names: readonly string[] }): string {
  if (resolvedCount === 0) return 'No cluster matches.'
  const moreCount = resolvedCount - names.length
  return `${clusterCountText(resolvedCount)}: ${names.join(', ')}${moreCount > 0 ? ` and ${moreCount.toLocaleString('en')} more` : ''}.`
}

interface SelectorFilterProps {
  selector: string | undefined
  onChange: (selector: string | undefined) => void
}

/**
 * A selector field that follows the URL. The selector is applied only when the user presses Enter or the field loses
 * focus, because each pause in typing already shows the matches.
 */
export function SelectorFilter({ selector, onChange }: SelectorFilterProps) {
  const [draft, setDraft] = useState<string>()
  const [knownSelector, setKnownSelector] = useState(selector)
  if (selector !== knownSelector) {
    setKnownSelector(selector)
    setDraft(undefined)
  }
  const apply = () => {
    const text = draft?.trim()
    if (text === undefined || text === (selector ?? '')) return
    if (text === '') onChange(undefined)
    else if (selectorError(text) === undefined) onChange(text)
  }
  return (
    <SelectorField
      value={draft ?? selector ?? ''}
      onChange={setDraft}
      hint={draft === undefined || draft === selector ? '' : 'Press Enter to filter the list.'}
      onEnter={apply}
      onBlur={apply}
    />
  )
}
