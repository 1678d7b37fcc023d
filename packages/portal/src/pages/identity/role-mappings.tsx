import { useQuery } from '@tanstack/react-query'
import { Plus, X } from 'lucide-react'
import { useState } from 'react'
import { Button, IconButton } from '../../ui/button.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { type Role, rolesQuery } from '../users/roles.tsx'
import styles from './identity.module.css'
import type { Provider } from './provider-types.ts'

type Mapping = Provider['roleMappings'][number]

/** The limit of the API. */
const mostMappings = 100
const usualRole: Role = 'Viewer'

interface RoleMappingsProps {
  mappings: readonly Mapping[]
  onChange: (mappings: Mapping[]) => void
  hint: string
}

export function RoleMappings({ mappings, onChange, hint }: RoleMappingsProps) {
  // Stable keys while rows are removed.
  const [keys, setKeys] = useState(() => mappings.map(() => crypto.randomUUID()))
  const change = (index: number, part: Partial<Mapping>) =>
    onChange(mappings.map((mapping, at) => (at === index ? { ...mapping, ...part } : mapping)))
  const add = () => {
    setKeys([...keys, crypto.randomUUID()])
    onChange([...mappings, { group: '', role: usualRole }])
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
        <Button icon={Plus} onClick={add} disabled={mappings.length >= mostMappings}>
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

/** Roles that the user may grant, and the current one. */
export function RoleField({ name, label, hint, role, onChange }: RoleFieldProps) {
  const items = useQuery(rolesQuery).data?.items ?? []
  const offered = items.filter(({ name: each, grantable }) => grantable || each === role).map(({ name: each }) => each)
  const roles = offered.includes(role) ? offered : [role, ...offered]
  const choose = (value: string) => {
    const chosen = roles.find((each) => each === value)
    if (chosen !== undefined) onChange(chosen)
  }
  const options = roles.map((each) => ({ value: each, label: each }))
  return <SelectField name={name} label={label} hint={hint} value={role} options={options} onChange={choose} />
}
