import { type ReactNode, useId } from 'react'
import { CheckField } from './field.tsx'
import styles from './field.module.css'

export interface Choice<Value extends string> {
  value: Value
  label: ReactNode
  hint?: ReactNode
  isDisabled?: boolean
}

interface CheckGroupProps<Value extends string> {
  label: string
  hint?: ReactNode
  choices: readonly Choice<Value>[]
  chosen: readonly Value[]
  onChange: (chosen: Value[]) => void
  problem?: string | undefined
}

/** Checkboxes with a common label. */
export function CheckGroup<Value extends string>(props: CheckGroupProps<Value>) {
  const { label, hint, choices, chosen, onChange, problem } = props
  const id = useId()
  const isChosen = new Set(chosen)
  const choose = (value: Value, isChecked: boolean) =>
    onChange(choices.map((choice) => choice.value).filter((each) => (each === value ? isChecked : isChosen.has(each))))
  return (
    <fieldset className={styles['group']} aria-describedby={id}>
      <legend className={styles['label']}>{label}</legend>
      {choices.map(({ value, label: text, hint: more, isDisabled = false }) => (
        <CheckField
          key={value}
          label={text}
          hint={more}
          checked={isChosen.has(value)}
          disabled={isDisabled}
          onChange={(isChecked) => choose(value, isChecked)}
        />
      ))}
      <div id={id}>
        {problem !== undefined && (
          <p role="alert" className={styles['error']}>
            {problem}
          </p>
        )}
        {hint !== undefined && <p className={styles['hint']}>{hint}</p>}
      </div>
    </fieldset>
  )
}
