import { useEffect, useEffectEvent, useState } from 'react'
import { type InputProps, TextField } from './field.tsx'

const pauseMs = 300

interface SearchFieldProps extends Pick<InputProps, 'label' | 'placeholder' | 'maxLength'> {
  /** What is searched for: the address holds it. */
  search: string | undefined
  onChange: (search: string | undefined) => void
}

/** A text to search for. Asks when the typing pauses; what else changes the address is shown as well. */
export function SearchField({ search, onChange, ...rest }: SearchFieldProps) {
  const [draft, setDraft] = useState<string>()
  const [sent, setSent] = useState<string>()
  const [known, setKnown] = useState(search)
  if (search !== known) {
    setKnown(search)
    // Whoever types on meanwhile does not lose it to what was typed before.
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
