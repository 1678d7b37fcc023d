import { useQuery } from '@tanstack/react-query'
import { useHasPermission } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { refreshModules } from '../../api/query.ts'
import { Button } from '../../ui/button.tsx'
import { CheckGroup } from '../../ui/field.tsx'
import { showErrorToast } from '../../ui/toast.tsx'
import styles from './modules.module.css'
import { organisationModulesQuery } from './use-modules.ts'

/** Allows the module to receive these events of the user's organisation and no others. */
export async function saveAllowedEvents(id: string, events: readonly string[]): Promise<void> {
  try {
    const body = events.length > 0 ? { enabled: true, events: [...events] } : { enabled: false }
    await unwrap(api.PUT('/api/v1/organisation/modules/{id}', { params: { path: { id } }, body }))
    await refreshModules()
  } catch (error) {
    showErrorToast('The events were not changed', error)
  }
}

interface EventChoicesProps {
  declared: readonly string[]
  allowed: readonly string[]
  onChange: (allowed: string[]) => void
}

export const EventChoices = ({ declared, allowed, onChange }: EventChoicesProps) => (
  <CheckGroup
    label="Events of your organisation that the module may receive"
    hint="You can change this later in the details of the module."
    choices={declared.map((value) => ({ value, label: <code>{value}</code> }))}
    chosen={allowed}
    onChange={onChange}
  />
)

/** The events that a module declares, and which of them an administrator has allowed for the organisation. */
export function ModuleEvents({ moduleId, declared }: { moduleId: string; declared: readonly string[] }) {
  const mayDecide = useHasPermission('users:admin')
  const { data } = useQuery(organisationModulesQuery)
  const module = data?.items.find(({ id }) => id === moduleId)
  const allowed = module?.enabled ? module.events : []
  const decide = (isEnabled: boolean) => saveAllowedEvents(moduleId, isEnabled ? declared : [])
  if (declared.length === 0) return null
  return (
    <section className={styles['part']} aria-label="Events">
      <h3>Events of your organisation</h3>
      <ul className={styles['list']}>
        {declared.map((type) => (
          <li key={type} className={styles['item']}>
            <code>{type}</code>
            <span className={styles['quiet']}>{allowed.includes(type) ? 'Sent to the module' : 'Not sent'}</span>
          </li>
        ))}
      </ul>
      {mayDecide && (
        <div className={styles['actions']}>
          {declared.some((type) => !allowed.includes(type)) && (
            <Button onClick={() => void decide(true)}>Allow events</Button>
          )}
          {allowed.length > 0 && <Button onClick={() => void decide(false)}>Stop events</Button>}
        </div>
      )}
    </section>
  )
}
