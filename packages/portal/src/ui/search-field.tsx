import { useEffect, useEffectEvent, useRef, useState } from 'react'
import { type InputProps, TextField } from './field.tsx'

const pauseMs = 300

interface SearchFieldProps extends Pick<InputProps, 'label' | 'placeholder' | 'maxLength'> {
  /** The search parameter of the address. */
  search: string | undefined
  onChange: (search: string | undefined) => void
}

/**
 * A search field that follows the address. Applies after a pause in typing or when it loses the focus: applied later, the search would undo
 * the navigation of a clicked link.
 */
export function SearchField({ search, onChange, ...rest }: SearchFieldProps) {
  const [draft, setDraft] = useState<string>()
  const [applied, setApplied] = useState<string>()
  const [known, setKnown] = useState(search)
  const timer = useRef(0)
  if (search !== known) {
    setKnown(search)
    // An address update must not overwrite newer input.
    if (search !== applied) setDraft(undefined)
  }
  const apply = () => {
    clearTimeout(timer.current)
    if (draft === undefined) return
    const text = draft.trim() || undefined
    setApplied(text)
    if ((text ?? '') !== (search ?? '')) onChange(text)
  }
  const onPause = useEffectEvent(apply)
  useEffect(() => {
    if (draft === undefined) return undefined
    timer.current = window.setTimeout(onPause, pauseMs)
    return () => clearTimeout(timer.current)
  }, [draft])
  return (
    <TextField {...rest} type="search" name="search" value={draft ?? search ?? ''} onChange={setDraft} onBlur={apply} />
  )
}
