import { TextArea, TextField } from '../../ui/field.tsx'
import { PasswordField } from '../../ui/password-field.tsx'
import type { Setting } from './provider-types.ts'

interface SettingFieldProps {
  setting: Setting
  isNeeded: boolean
  /** An empty field keeps the stored secret. */
  isStored: boolean
  text: string
}

const hintOf = ({ hint, look, usual }: Setting, isStored: boolean): string | undefined => {
  if (look === 'secret' && isStored) return 'Leave empty to keep the stored secret.'
  return hint ?? (usual === undefined ? undefined : `Empty: ${usual}`)
}

export function SettingField({ setting, isNeeded, isStored, text }: SettingFieldProps) {
  const { name, label, look = 'text', example, usual } = setting
  const isRequired = isNeeded && !(look === 'secret' && isStored)
  const field = { name, label, hint: hintOf(setting, isStored), required: isRequired, isOptional: !isRequired }
  if (look === 'secret') return <PasswordField {...field} autoComplete="new-password" maxLength={2000} />
  if (look === 'certificate') return <TextArea {...field} defaultValue={text} rows={4} spellCheck={false} isMono />
  return (
    <TextField
      {...field}
      defaultValue={text}
      placeholder={example ?? usual}
      inputMode={look === 'url' ? 'url' : 'text'}
      autoComplete="off"
      autoCapitalize="none"
      spellCheck={false}
      maxLength={500}
      isMono
    />
  )
}
