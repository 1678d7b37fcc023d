import { useState } from 'react'
import { CheckField, TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import styles from './identity.module.css'
import {
  isRequiredSetting,
  providerTypeSpecs,
  signInLabelOf,
  type Provider,
  type ProviderRequest,
  type ProviderType,
  type Setting,
} from './provider-types.ts'
import { requestOf, valueText } from './request.ts'
import { RoleField, RoleMappings } from './role-mappings.tsx'
import { SettingField } from './setting-field.tsx'

interface ProviderFormProps {
  type: ProviderType
  /** The one that is changed; undefined: one is added. */
  before?: Provider
  submitLabel: string
  onSubmit: (request: ProviderRequest) => Promise<unknown>
}

/** Everything that is configured of a provider. */
export function ProviderForm({ type, before, submitLabel, onSubmit }: ProviderFormProps) {
  const kind = providerTypeSpecs[type]
  const [displayName, setDisplayName] = useState(before?.displayName ?? '')
  const [enabled, setEnabled] = useState(before?.enabled ?? true)
  const [defaultRole, setDefaultRole] = useState(before?.defaultRole ?? 'Viewer')
  const [roleMappings, setRoleMappings] = useState(before?.roleMappings ?? [])
  const send = (values: FormValues) => onSubmit(requestOf(type, values, { enabled, defaultRole, roleMappings }, before))
  const field = (setting: Setting) => (
    <SettingField
      key={setting.name}
      setting={setting}
      isNeeded={isRequiredSetting(kind, setting)}
      isStored={before !== undefined}
      text={before ? valueText(before, setting.name) : ''}
    />
  )
  return (
    <Form submitLabel={submitLabel} onSubmit={send}>
      {!before && kind.place.map(field)}
      {kind.needs.map(field)}
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
        label="Switched on"
        hint="While it is off nobody signs in with it, and the sessions of its users end."
        checked={enabled}
        onChange={setEnabled}
      />
      <RoleField
        name="defaultRole"
        label="Role without a group"
        hint="For whoever is in none of the groups below."
        role={defaultRole}
        onChange={setDefaultRole}
      />
      <RoleMappings
        mappings={roleMappings}
        onChange={setRoleMappings}
        hint={
          type === 'LDAP' ? 'A group is named by its DN.' : `A group is named as the provider names it to the platform.`
        }
      />
      <details className={styles['more']}>
        <summary>More settings</summary>
        <div className={styles['stack']}>{kind.more.map(field)}</div>
      </details>
    </Form>
  )
}
