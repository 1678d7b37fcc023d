import { useNavigate, useSearch } from '@tanstack/react-router'
import { SelectField } from '../../ui/field.tsx'
import styles from './notifications.module.css'
import type { Filter, Notification } from './use-notifications.ts'

const typeTitles: Record<Notification['type'], string> = {
  ClusterHealthDegraded: 'Cluster degraded',
  ClusterOffline: 'Cluster offline',
  ClusterRecovered: 'Cluster recovered',
  JobFailed: 'Job failed',
  BatchFinished: 'Batch finished',
  ModuleInstalled: 'Module installed',
  ModuleFailed: 'Module failed',
  UpdateAvailable: 'Update available',
  UpdateCompleted: 'Update completed',
  UpdateFailed: 'Update failed',
  RelayUpdateCompleted: 'Relay update completed',
  RelayUpdateStopped: 'Relay update stopped',
  SecurityAlert: 'Security alert',
  WebhookDisabled: 'Webhook disabled',
}
const severityTitles: Record<Notification['severity'], string> = {
  info: 'Info',
  warning: 'Warning',
  critical: 'Critical',
}

const keyIn = <Name extends string>(names: Record<Name, string>, value: string | undefined): Name | undefined =>
  isKeyOf(names, value) ? value : undefined

const isKeyOf = <Name extends string>(names: Record<Name, string>, value: string | undefined): value is Name =>
  value !== undefined && Object.hasOwn(names, value)

const optionsOf = (names: Record<string, string>, allLabel: string) => [
  { value: '', label: allLabel },
  ...Object.entries(names).map(([value, label]) => ({ value, label })),
]

export function useFilter(): Filter {
  const { show, type, severity } = useSearch({ from: '/signed-in/notifications' })
  return { unreadOnly: show === 'unread', type: keyIn(typeTitles, type), severity: keyIn(severityTitles, severity) }
}

export function Filters() {
  const { unreadOnly, type, severity } = useFilter()
  const navigate = useNavigate()
  const choose = (change: { show?: 'unread' | undefined; type?: string; severity?: string }) => {
    const values = { show: unreadOnly ? ('unread' as const) : undefined, type, severity, ...change }
    const search = Object.fromEntries(Object.entries(values).filter(([, value]) => value))
    void navigate({ to: '/notifications', search, replace: true })
  }
  return (
    <div role="group" aria-label="Filter" className={styles['filters']}>
      <SelectField
        name="show"
        label="Show"
        options={[
          { value: '', label: 'All' },
          { value: 'unread', label: 'Unread' },
        ]}
        value={unreadOnly ? 'unread' : ''}
        onChange={(value) => choose({ show: value === 'unread' ? 'unread' : undefined })}
      />
      <SelectField
        name="type"
        label="Type"
        options={optionsOf(typeTitles, 'All types')}
        value={type ?? ''}
        onChange={(value) => choose({ type: value })}
      />
      <SelectField
        name="severity"
        label="Severity"
        options={optionsOf(severityTitles, 'All severities')}
        value={severity ?? ''}
        onChange={(value) => choose({ severity: value })}
      />
    </div>
  )
}
