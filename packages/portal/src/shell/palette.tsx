import { Autocomplete } from '@base-ui/react/autocomplete'
import { Dialog } from '@base-ui/react/dialog'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type LinkProps, useNavigate } from '@tanstack/react-router'
import { Search } from 'lucide-react'
import { useRef, useState } from 'react'
import { type Permission, useMe } from '../api/account.ts'
import { api, unwrap } from '../api/client.ts'
import { clustersById } from '../api/clusters.ts'
import { resourceLink } from '../lib/resource-link.ts'
import { chooseTheme } from '../lib/theme.ts'
import { useDebounced } from '../ui/hooks.ts'
import { Icon } from '../ui/icon.tsx'
import { useNavigation } from './navigation.tsx'
import styles from './palette.module.css'
import { useSignOut } from './use-sign-out.ts'

const hintId = 'palette-hint'

/** A dialog that finds pages and actions by label, clusters by name, recent jobs by title and resources by id. */
export function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('')
  const { groups, isSearching } = useCommands(text)
  const isNavigating = useRef(false)
  const run = (command: Command) => {
    isNavigating.current = command.opensPage ?? false
    onClose()
    command.run()
  }
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className={styles['veil']} />
        <Dialog.Popup
          className={styles['palette']}
          aria-label="Search and commands"
          // The shell moves the focus to a newly opened page.
          finalFocus={() => !isNavigating.current}
        >
          <Autocomplete.Root
            open
            inline
            mode="none"
            items={groups}
            value={text}
            // A selected command runs; its label must not replace the text of the field.
            onValueChange={(value, { reason }) => reason !== 'item-press' && setText(value)}
            itemToStringValue={({ label }: Command) => label}
            autoHighlight="always"
            keepHighlight
          >
            <div className={styles['field']}>
              <Search size={18} aria-hidden />
              <Autocomplete.Input
                aria-label="Search and commands"
                aria-describedby={hintId}
                placeholder="Page, action, cluster, recent job or id"
                maxLength={200}
                className={styles['input']}
              />
              <Dialog.Close className={styles['close']}>Esc</Dialog.Close>
            </div>
            <Autocomplete.Status id={hintId} className={styles['status']}>
              {isSearching ? 'Searching clusters …' : 'Use the arrow keys and Enter.'}
            </Autocomplete.Status>
            <Autocomplete.Empty className={styles['empty']}>
              {!isSearching && text !== '' && 'No results.'}
            </Autocomplete.Empty>
            <Autocomplete.List className={styles['list']}>
              {(group: CommandGroup) => <Group key={group.value} group={group} onRun={run} />}
            </Autocomplete.List>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

const Group = ({ group, onRun }: { group: CommandGroup; onRun: (command: Command) => void }) => (
  <Autocomplete.Group items={group.items}>
    <Autocomplete.GroupLabel className={styles['heading']}>{group.value}</Autocomplete.GroupLabel>
    <Autocomplete.Collection>
      {(command: Command) => (
        <Autocomplete.Item key={command.id} value={command} className={styles['item']} onClick={() => onRun(command)}>
          <Icon name={command.icon} size={16} />
          <span>{command.label}</span>
        </Autocomplete.Item>
      )}
    </Autocomplete.Collection>
  </Autocomplete.Group>
)

export interface Command {
  id: string
  label: string
  icon: string
  run: () => void
  /** Whether the command opens another page. */
  opensPage?: boolean
}

export interface CommandGroup {
  value: string
  items: Command[]
}

type Navigate = ReturnType<typeof useNavigate>

const matches = (label: string, terms: readonly string[]): boolean =>
  terms.every((term) => label.toLowerCase().includes(term))

/** Returns the commands that match the text and that the user has permission for. Empty groups are omitted. */
export function useCommands(text: string): { groups: CommandGroup[]; isSearching: boolean } {
  const navigate = useNavigate()
  const signOut = useSignOut()
  const { permissions } = useMe()
  const entries = useNavigation().toSorted((a, b) => a.slotId.localeCompare(b.slotId))
  const pages = entries.map(({ source, id, label, icon, route }): Command => {
    return { id: `${source} ${id}`, label, icon, opensPage: true, run: () => void navigate({ to: route }) }
  })
  const terms = text.toLowerCase().split(/\s+/)
  const matchingCommands = (commands: readonly Command[]) => commands.filter(({ label }) => matches(label, terms))
  const clusters = useClusters(text, permissions.includes('clusters:read'), navigate)
  const jobs = useRecentJobs(terms, text.trim() !== '' && permissions.includes('jobs:read'), navigate)
  const groups = [
    { value: 'By id', items: commandsById(text, navigate) },
    { value: 'Pages', items: matchingCommands(pages) },
    { value: 'Actions', items: matchingCommands(actionCommands(permissions, navigate, signOut)) },
    { value: 'Clusters', items: clusters.items },
    { value: 'Recent jobs', items: jobs },
  ]
  return { groups: groups.filter(({ items }) => items.length > 0), isSearching: clusters.isSearching }
}

function commandsById(text: string, navigate: Navigate): Command[] {
  const id = text.trim()
  const link = resourceLink(id)
  if (link === undefined) return []
  return [{ id, label: `Go to ${id}`, icon: 'arrow-right', opensPage: true, run: () => void navigate(link) }]
}

const actionCommand = (label: string, icon: string, run: () => unknown): Command => {
  return { id: label, label, icon, run: () => void run() }
}

function actionCommands(permissions: readonly Permission[], navigate: Navigate, signOut: () => void): Command[] {
  const ifPermitted = (permission: Permission, command: Command) => (permissions.includes(permission) ? [command] : [])
  const pageCommand = (label: string, icon: string, to: NonNullable<LinkProps['to']>): Command => {
    return { id: label, label, icon, opensPage: true, run: () => void navigate({ to }) }
  }
  return [
    ...ifPermitted('clusters:write', pageCommand('Register cluster', 'server', '/clusters/register')),
    ...ifPermitted('jobs:write', pageCommand('Run job', 'square-terminal', '/jobs/new')),
    ...ifPermitted('modules:install', pageCommand('Install module', 'blocks', '/modules')),
    actionCommand('Theme: system', 'monitor', () => chooseTheme('system')),
    actionCommand('Theme: light', 'sun', () => chooseTheme('light')),
    actionCommand('Theme: dark', 'moon', () => chooseTheme('dark')),
    actionCommand('API reference', 'book-open', () => window.open('/docs', '_blank', 'noopener')),
    actionCommand('Sign out', 'log-out', signOut),
  ]
}

const pageSize = 8
const maxNameLength = 64

// The platform normalises cluster names in the same way.
const normalise = (name: string): string => name.normalize('NFC').toLowerCase()

const recentJobCount = 50
const maxJobs = 5

// One request returns the newest jobs, which are then searched while the user types.
function useRecentJobs(terms: readonly string[], isEnabled: boolean, navigate: Navigate): Command[] {
  const { data } = useQuery({
    queryKey: ['jobs', 'recent', recentJobCount],
    enabled: isEnabled,
    queryFn: ({ signal }) => loadRecentJobs(signal),
    staleTime: 30_000,
  })
  if (!isEnabled) return []
  const commands = (data ?? []).map(({ id, clusterName, title, status, createdBy }): Command => {
    const place = clusterName === undefined ? '' : ` on ${clusterName}`
    const run = () => void navigate({ to: '/jobs/$jobId', params: { jobId: id } })
    const label = `${title}${place}, ${createdBy.username} (${status})`
    return { id, label, icon: 'square-terminal', opensPage: true, run }
  })
  return commands.filter(({ label }) => matches(label, terms)).slice(0, maxJobs)
}

async function loadRecentJobs(signal: AbortSignal) {
  const { items } = await unwrap(api.GET('/api/v1/jobs', { params: { query: { pageSize: recentJobCount } }, signal }))
  const ids = [...new Set(items.flatMap(({ clusterId }) => clusterId ?? []))]
  const names = new Map((await clustersById(ids, signal)).map(({ id, name }) => [id, name]))
  return items.map((job) => ({ ...job, clusterName: names.get(job.clusterId ?? '') }))
}

// Clusters are requested after a pause in typing.
function useClusters(text: string, mayRead: boolean, navigate: Navigate) {
  const term = text.trim().slice(0, maxNameLength)
  const search = useDebounced(term)
  const isEnabled = mayRead && term !== '' && resourceLink(term) === undefined
  const query = useQuery({
    queryKey: ['clusters', 'search', search],
    enabled: isEnabled && search !== '' && resourceLink(search) === undefined,
    queryFn: ({ signal }) => unwrap(api.GET('/api/v1/clusters', { params: { query: { search, pageSize } }, signal })),
    placeholderData: keepPreviousData,
  })
  const results = isEnabled && search !== '' ? (query.data?.items ?? []) : []
  // Results of the previous text must not be opened by the Enter key.
  const matchingClusters = results.filter(({ name }) => normalise(name).includes(normalise(term)))
  const items = matchingClusters.map(({ id, name, status }): Command => {
    const run = () => void navigate({ to: '/clusters/$clusterId', params: { clusterId: id } })
    return { id, label: `${name} (${status})`, icon: 'server', opensPage: true, run }
  })
  return { items, isSearching: isEnabled && (search !== term || query.isFetching) }
}
