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
  const [appliedSearch, setAppliedSearch] = useState<string>()
  const [knownSearch, setKnownSearch] = useState(search)
  const [pathname] = useState(() => location.pathname)
  if (search !== knownSearch) {
    setKnownSearch(search)
    // A change of the URL must not overwrite newer input.
    if (search !== appliedSearch) setDraft(undefined)
  }
  const apply = useEffectEvent((text: string | undefined) => {
    // The page stays mounted while a clicked link loads another one. The search must not undo that navigation.
    if (location.pathname !== pathname) return
    setAppliedSearch(text)
    if ((text ?? '') !== (search ?? '')) onChange(text)
  })
  useEffect(() => {
    if (draft === undefined) return undefined
    const timer = setTimeout(() => apply(draft.trim() || undefined), pauseMs)
    return () => clearTimeout(timer)
  }, [draft])
  return <TextField {...rest} type="search" name={name} value={draft ?? search ?? ''} onChange={setDraft} />
}
