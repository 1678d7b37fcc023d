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
  /** The provider to change; undefined for a new one. */
  before?: Provider
  submitLabel: string
  onSubmit: (request: ProviderRequest) => Promise<unknown>
}

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
        label="Enabled"
        hint="If disabled, users cannot sign in with it and their sessions end."
        checked={enabled}
        onChange={setEnabled}
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
        <div className={styles['stack']}>{kind.more.map(field)}</div>
      </details>
    </Form>
  )
}
