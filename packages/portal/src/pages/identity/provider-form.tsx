import { useQuery } from '@tanstack/react-query'
import { Plus, X } from 'lucide-react'
import { useState } from 'react'
import { Button, IconButton } from '../../ui/button.tsx'
import { useDraft } from '../../ui/draft.ts'
import { CheckField, PasswordField, SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { type Role, rolesQuery } from '../users/roles.tsx'
import styles from './identity.module.css'
import {
  isRequiredSetting,
  type Provider,
  type ProviderRequest,
  type ProviderType,
  providerTypeSpecs,
  type Setting,
  signInLabelOf,
} from './provider-types.ts'
import { requestOf, valueText } from './request.ts'

interface ProviderFormProps {
  type: ProviderType
  /** The provider to change, or undefined to add one. */
  before?: Provider
  submitLabel: string
  onSubmit: (request: ProviderRequest) => Promise<unknown>
}

export function ProviderForm({ type, before, submitLabel, onSubmit }: ProviderFormProps) {
  const spec = providerTypeSpecs[type]
  const [displayName, setDisplayName] = useState(before?.displayName ?? '')
  const [isEnabled, setIsEnabled] = useDraft('enabled', before?.enabled ?? true)
  const [defaultRole, setDefaultRole] = useDraft('default role', before?.defaultRole ?? 'Viewer')
  const [roleMappings, setRoleMappings] = useDraft('role mappings', before?.roleMappings ?? [])
  const send = (values: FormValues) =>
    onSubmit(requestOf(type, values, { enabled: isEnabled, defaultRole, roleMappings }, before))
  const field = (setting: Setting) => (
    <SettingField
      key={setting.name}
      setting={setting}
      isRequiredByType={isRequiredSetting(spec, setting)}
      isStored={before !== undefined}
      text={before ? valueText(before, setting.name) : ''}
    />
  )
  return (
    <Form submitLabel={submitLabel} onSubmit={send}>
      {!before && spec.identifying.map(field)}
      {spec.required.map(field)}
      <TextField
        name="displayName"
        label="Name"
        hint={`On the sign-in page: “${signInLabelOf(type, displayName.trim() || '…')}”`}
        value={displayName}
        onChange={setDisplayName}
        maxLength={100}
        isOptional
      />
      <CheckField
        label="Enabled"
        hint="If disabled, users cannot sign in with it and their sessions end."
        checked={isEnabled}
        onChange={setIsEnabled}
      />
      <RoleField
        name="defaultRole"
        label="Default role"
        hint="For users without a mapped group."
        role={defaultRole}
        onChange={setDefaultRole}
      />
      <RoleMappings
        mappings={roleMappings}
        onChange={setRoleMappings}
        hint={type === 'LDAP' ? 'Enter the DN of the group.' : `Enter the group as in the provider’s claim.`}
      />
      <details className={styles['more']}>
        <summary>More settings</summary>
        <div className={styles['stack']}>{spec.optional.map(field)}</div>
      </details>
    </Form>
  )
}

interface SettingFieldProps {
  setting: Setting
  isRequiredByType: boolean
  /** Whether the provider exists, so that an empty secret field keeps the stored secret. */
  isStored: boolean
  text: string
}

const hintOf = ({ hint, format, defaultValue }: Setting, isStored: boolean): string | undefined => {
  if (format === 'secret' && isStored) return 'Leave empty to keep the stored secret.'
  return hint ?? (defaultValue === undefined ? undefined : `Empty: ${defaultValue}`)
}

function SettingField({ setting, isRequiredByType, isStored, text }: SettingFieldProps) {
  const { name, label, format = 'text', example, defaultValue, options } = setting
  const isRequired = isRequiredByType && !(format === 'secret' && isStored)
  const field = { name, label, hint: hintOf(setting, isStored), required: isRequired, isOptional: !isRequired }
  if (options !== undefined)
    return <SelectField name={name} label={label} hint={setting.hint} options={options} defaultValue={text} />
  if (format === 'secret') return <PasswordField {...field} autoComplete="new-password" maxLength={2000} />
  if (format === 'certificate') return <TextArea {...field} defaultValue={text} rows={4} spellCheck={false} isMono />
  return (
    <TextField
      {...field}
      defaultValue={text}
      placeholder={example ?? defaultValue}
      inputMode={format === 'url' ? 'url' : 'text'}
      autoComplete="off"
      autoCapitalize="none"
      spellCheck={false}
      maxLength={500}
      isMono
    />
  )
}

type Mapping = Provider['roleMappings'][number]

const maxMappings = 100
const defaultRole: Role = 'Viewer'

interface RoleMappingsProps {
  mappings: readonly Mapping[]
  onChange: (mappings: Mapping[]) => void
  hint: string
}

function RoleMappings({ mappings, onChange, hint }: RoleMappingsProps) {
  // Indexes change when a row is removed, so rows need stable keys.
  const [keys, setKeys] = useState(() => mappings.map(() => crypto.randomUUID()))
  const change = (index: number, part: Partial<Mapping>) =>
    onChange(mappings.map((mapping, position) => (position === index ? { ...mapping, ...part } : mapping)))
  const add = () => {
    setKeys([...keys, crypto.randomUUID()])
    onChange([...mappings, { group: '', role: defaultRole }])
  }
  const remove = (index: number) => {
    setKeys(keys.toSpliced(index, 1))
    onChange(mappings.toSpliced(index, 1))
  }
  return (
    <fieldset className={styles['mappings']}>
      <legend>Role mappings</legend>
      <p className={styles['hint']}>{hint}</p>
      {mappings.map(({ group, role }, index) => (
        <div key={keys[index]} role="group" aria-label={`Mapping ${index + 1}`} className={styles['mapping']}>
          <TextField
            name={`group-${keys[index]}`}
            label="Group"
            value={group}
            onChange={(text) => change(index, { group: text })}
            maxLength={500}
            required
            isMono
          />
          <RoleField
            name={`role-${keys[index]}`}
            label="Role"
            role={role}
            onChange={(to) => change(index, { role: to })}
          />
          <IconButton label={`Remove mapping ${index + 1}`} icon={X} onClick={() => remove(index)} />
        </div>
      ))}
      <div>
        <Button icon={Plus} onClick={add} disabled={mappings.length >= maxMappings}>
          Add mapping
        </Button>
      </div>
    </fieldset>
  )
}

interface RoleFieldProps {
  name: string
  label: string
  hint?: string
  role: Role
  onChange: (role: Role) => void
}

// Offers the roles that the user may grant, and the current one.
function RoleField({ name, label, hint, role, onChange }: RoleFieldProps) {
  const items = useQuery(rolesQuery).data?.items ?? []
  const offeredRoles = items
    .filter(({ name: each, grantable }) => grantable || each === role)
    .map(({ name: each }) => each)
  const roles = offeredRoles.includes(role) ? offeredRoles : [role, ...offeredRoles]
  const choose = (value: string) => {
    const chosenRole = roles.find((each) => each === value)
    if (chosenRole !== undefined) onChange(chosenRole)
  }
  const options = roles.map((each) => ({ value: each, label: each }))
  return <SelectField name={name} label={label} hint={hint} value={role} options={options} onChange={choose} />
}
