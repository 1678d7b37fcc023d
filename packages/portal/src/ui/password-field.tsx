import { Field as Base } from '@base-ui/react/field'
import { Eye, EyeOff } from 'lucide-react'
import { useState } from 'react'
import { IconButton } from './button.tsx'
import { classes } from './class-names.ts'
import { Field, type InputProps } from './field.tsx'
import styles from './field.module.css'

/** A password field with a button that shows the text. */
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
