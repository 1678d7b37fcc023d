import { useEffect, useEffectEvent, useState } from 'react'
import { type InputProps, TextField } from './field.tsx'

const pauseMs = 300

interface SearchFieldProps extends Pick<InputProps, 'label' | 'placeholder' | 'maxLength'> {
  /** The search parameter of the address. */
  search: string | undefined
  onChange: (search: string | undefined) => void
}

/** A search field that applies after a pause in typing and follows the address. */
export function SearchField({ search, onChange, ...rest }: SearchFieldProps) {
  const [draft, setDraft] = useState<string>()
  const [sent, setSent] = useState<string>()
  const [known, setKnown] = useState(search)
  if (search !== known) {
    setKnown(search)
    // An address update must not overwrite newer input.
    if (search !== sent) setDraft(undefined)
  }
  const send = useEffectEvent((text: string) => {
    const wanted = text.trim() || undefined
    setSent(wanted)
    if (wanted !== search) onChange(wanted)
  })
  useEffect(() => {
    if (draft === undefined) return undefined
    const timer = setTimeout(() => send(draft), pauseMs)
    return () => clearTimeout(timer)
  }, [draft])
  return <TextField {...rest} type="search" name="search" value={draft ?? search ?? ''} onChange={setDraft} />
}
