import { useId } from 'react'
import { type InputProps, TextField } from '../../ui/field.tsx'
import { useNow } from '../../ui/time.tsx'
import { isTimezone } from './answers.ts'

/** Browsers omit UTC. */
const zones = ['UTC', ...Intl.supportedValuesOf('timeZone')]

/** A time zone field with search. */
export function TimezoneField({ value, ...rest }: Pick<InputProps, 'name' | 'check' | 'onChange'> & { value: string }) {
  const id = useId()
  const nowMs = useNow()
  const there = isTimezone(value)
    ? new Intl.DateTimeFormat(undefined, { timeZone: value, timeStyle: 'short', dateStyle: 'medium' }).format(nowMs)
    : undefined
  return (
    <>
      <TextField
        {...rest}
        value={value}
        label="Time zone"
        hint={there === undefined ? 'Search by city.' : `Current time: ${there}`}
        list={id}
        autoComplete="off"
        spellCheck={false}
        // Selects the text, because the list shows matches of the whole text.
        onFocus={(event) => event.currentTarget.select()}
      />
      <datalist id={id}>
        {zones.map((zone) => (
          <option key={zone} value={zone}>
            {zone}
          </option>
        ))}
      </datalist>
    </>
  )
}
