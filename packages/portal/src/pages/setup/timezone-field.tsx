import { useId } from 'react'
import { type InputProps, TextField } from '../../ui/field.tsx'
import { useNow } from '../../ui/time.tsx'
import { isTimezone } from './answers.ts'

/** Browsers leave out UTC. */
const zones = ['UTC', ...Intl.supportedValuesOf('timeZone')]

/** A time zone: typing searches all that there are. */
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
        hint={there === undefined ? 'Type to search, for example the name of a city.' : `There it is ${there} now.`}
        list={id}
        autoComplete="off"
        spellCheck={false}
        // The list shows what fits to the text: with all of it chosen, the first letter typed searches.
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
