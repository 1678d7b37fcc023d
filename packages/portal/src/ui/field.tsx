import { Field as Base } from '@base-ui/react/field'
import { ChevronDown, Eye, EyeOff } from 'lucide-react'
import { type ComponentProps, type ReactNode, useId, useState } from 'react'
import { IconButton } from './button.tsx'
import { classes } from './class-names.ts'
import styles from './field.module.css'

interface FieldProps {
  /** The field of the request. Errors of this field are shown here. */
  name: string
  label: ReactNode
  hint?: ReactNode
  isOptional?: boolean
  /** Returns an error message, or undefined if the value is valid. `values` contains all values of the form. */
  check?: ((value: string, values: Record<string, unknown>) => string | undefined) | undefined
}

// Connects label, control, hint and error for screen readers.
function Field({ name, label, hint, isOptional, check, children }: FieldProps & { children: ReactNode }) {
  const validate =
    check && ((value: unknown, all: Record<string, unknown>) => check(typeof value === 'string' ? value : '', all))
  return (
    <Base.Root name={name} className={styles['field']} validationMode="onSubmit" validate={validate}>
      <Base.Label className={styles['label']}>
        {label} {isOptional && <span className={styles['optional']}>(optional)</span>}
      </Base.Label>
      {children}
      <Base.Error className={styles['error']} />
      {hint !== undefined && <Base.Description className={styles['hint']}>{hint}</Base.Description>}
    </Base.Root>
  )
}

export type InputProps = FieldProps &
  Omit<ComponentProps<'input'>, 'name' | 'onChange'> & { onChange?: (value: string) => void; isMono?: boolean }

export function TextField({ name, label, hint, isOptional, check, onChange, isMono, ...rest }: InputProps) {
  return (
    <Field {...{ name, label, hint, check }} isOptional={isOptional ?? false}>
      <Base.Control
        {...rest}
        onValueChange={(value) => onChange?.(value)}
        className={classes(styles['control'], isMono && styles['mono'])}
      />
    </Field>
  )
}

type TextAreaProps = FieldProps &
  Omit<ComponentProps<'textarea'>, 'name' | 'onChange'> & { onChange?: (value: string) => void; isMono?: boolean }

export function TextArea({ name, label, hint, isOptional, check, onChange, isMono, ...rest }: TextAreaProps) {
  return (
    <Field {...{ name, label, hint, check }} isOptional={isOptional ?? false}>
      <Base.Control
        render={<textarea {...rest} onChange={(event) => onChange?.(event.currentTarget.value)} />}
        className={classes(styles['control'], isMono && styles['mono'])}
      />
    </Field>
  )
}

export interface Option {
  value: string
  label: string
}

type SelectProps = FieldProps &
  Omit<ComponentProps<'select'>, 'name' | 'onChange' | 'children'> & {
    options: readonly Option[]
    onChange?: (value: string) => void
  }

export function SelectField({ name, label, hint, isOptional, check, options, onChange, ...rest }: SelectProps) {
  return (
    <Field {...{ name, label, hint, check }} isOptional={isOptional ?? false}>
      <span className={styles['select']}>
        <Base.Control
          render={
            <select {...rest} onChange={(event) => onChange?.(event.currentTarget.value)}>
              {options.map(({ value, label: text }) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
            </select>
          }
          className={styles['control']}
        />
        <ChevronDown size={16} aria-hidden />
      </span>
    </Field>
  )
}

type CheckProps = Omit<ComponentProps<'input'>, 'onChange' | 'type'> & {
  label: ReactNode
  hint?: ReactNode
  onChange?: (isChecked: boolean) => void
}

export const CheckField = ({ label, hint, onChange, ...rest }: CheckProps) => (
  <label className={styles['check']}>
    <input type="checkbox" {...rest} onChange={(event) => onChange?.(event.currentTarget.checked)} />
    <span>
      {label}
      {hint !== undefined && <span className={styles['hint']}> {hint}</span>}
    </span>
  </label>
)

export function PasswordField({ name, label, hint, isOptional, check, onChange, isMono, ...rest }: InputProps) {
  const [isShown, setIsShown] = useState(false)
  const [action, icon] = isShown ? (['Hide', EyeOff] as const) : (['Show', Eye] as const)
  return (
    <Field {...{ name, label, hint, check }} isOptional={isOptional ?? false}>
      <span className={styles['secret']}>
        <Base.Control
          spellCheck={false}
          autoCapitalize="none"
          autoCorrect="off"
          data-secret=""
          {...rest}
          type={isShown ? 'text' : 'password'}
          onValueChange={(value) => onChange?.(value)}
          className={classes(styles['control'], isMono && styles['mono'])}
        />
        <IconButton label={`${action} password`} icon={icon} onClick={() => setIsShown(!isShown)} />
      </span>
    </Field>
  )
}

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
  onChange: (chosenValues: Value[]) => void
  problem?: string | undefined
}

export function CheckGroup<Value extends string>(props: CheckGroupProps<Value>) {
  const { label, hint, choices, chosen, onChange, problem } = props
  const id = useId()
  const chosenSet = new Set(chosen)
  const choose = (value: Value, isChecked: boolean) =>
    onChange(choices.map((choice) => choice.value).filter((each) => (each === value ? isChecked : chosenSet.has(each))))
  return (
    <fieldset className={styles['group']} aria-describedby={id}>
      <legend className={styles['label']}>{label}</legend>
      {choices.map(({ value, label: text, hint: more, isDisabled = false }) => (
        <CheckField
          key={value}
          label={text}
          hint={more}
          checked={chosenSet.has(value)}
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
