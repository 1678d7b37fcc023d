import { useEffect, useEffectEvent, useState } from 'react'
import { type InputProps, TextField } from './field.tsx'

const pauseMs = 300

interface SearchFieldProps extends Pick<InputProps, 'label' | 'placeholder' | 'maxLength'> {
  name?: string
  search: string | undefined
  onChange: (search: string | undefined) => void
}

/** A search field that follows the URL. The text is applied after a pause in typing. */
export function SearchField({ name = 'search', search, onChange, ...rest }: SearchFieldProps) {
  const [draft, setDraft] = useState<string>()
  const [applied, setApplied] = useState<string>()
  const [known, setKnown] = useState(search)
  const [pathname] = useState(() => location.pathname)
  if (search !== known) {
    setKnown(search)
    // A change of the URL must not overwrite newer input.
    if (search !== applied) setDraft(undefined)
  }
  const apply = useEffectEvent((text: string | undefined) => {
    // The page stays mounted while a clicked link loads another one. The search must not undo that navigation.
    if (location.pathname !== pathname) return
    setApplied(text)
    if ((text ?? '') !== (search ?? '')) onChange(text)
  })
  useEffect(() => {
    if (draft === undefined) return undefined
    const timer = setTimeout(() => apply(draft.trim() || undefined), pauseMs)
    return () => clearTimeout(timer)
  }, [draft])
  return <TextField {...rest} type="search" name={name} value={draft ?? search ?? ''} onChange={setDraft} />
}
