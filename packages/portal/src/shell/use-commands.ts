import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type LinkProps, useNavigate } from '@tanstack/react-router'
import { type Permission, useMe } from '../api/account.ts'
import { api, unwrap } from '../api/client.ts'
import { addressOf } from '../lib/address-of.ts'
import { chooseTheme } from '../lib/theme.ts'
import { useDebounced } from '../ui/use-debounced.ts'
import { useNavigation } from './navigation.tsx'
import { useSignOut } from './use-sign-out.ts'

export interface Command {
  id: string
  label: string
  icon: string
  run: () => void
  /** Whether it opens another page. */
  isPlace?: boolean
}

export interface CommandGroup {
  value: string
  items: Command[]
}

type Navigate = ReturnType<typeof useNavigate>

const fits = (label: string, words: readonly string[]): boolean =>
  words.every((word) => label.toLowerCase().includes(word))

/** Matching commands in groups that are not empty, limited to the user's permissions. */
export function useCommands(text: string): { groups: CommandGroup[]; isSearching: boolean } {
  const navigate = useNavigate()
  const signOut = useSignOut()
  const { permissions } = useMe()
  const entries = useNavigation().toSorted((a, b) => a.slotId.localeCompare(b.slotId))
  const pages = entries.map(({ source, id, label, icon, route }): Command => {
    return { id: `${source} ${id}`, label, icon, isPlace: true, run: () => void navigate({ to: route }) }
  })
  const words = text.toLowerCase().split(/\s+/)
  const fitting = (commands: readonly Command[]) => commands.filter(({ label }) => fits(label, words))
  const clusters = useClusters(text, permissions.includes('clusters:read'), navigate)
  const groups = [
    { value: 'By id', items: byId(text, navigate) },
    { value: 'Pages', items: fitting(pages) },
    { value: 'Actions', items: fitting(actions(permissions, navigate, signOut)) },
    { value: 'Clusters', items: clusters.items },
  ]
  return { groups: groups.filter(({ items }) => items.length > 0), isSearching: clusters.isSearching }
}

function byId(text: string, navigate: Navigate): Command[] {
  const id = text.trim()
  const address = addressOf(id)
  if (address === undefined) return []
  return [{ id, label: `Go to ${id}`, icon: 'arrow-right', isPlace: true, run: () => void navigate(address) }]
}

const deed = (label: string, icon: string, run: () => unknown): Command => {
  return { id: label, label, icon, run: () => void run() }
}

function actions(permissions: readonly Permission[], navigate: Navigate, signOut: () => void): Command[] {
  const may = (needs: Permission, command: Command) => (permissions.includes(needs) ? [command] : [])
  const place = (label: string, icon: string, to: NonNullable<LinkProps['to']>): Command => {
    return { id: label, label, icon, isPlace: true, run: () => void navigate({ to }) }
  }
  return [
    ...may('clusters:write', place('Register cluster', 'server', '/clusters/register')),
    ...may('jobs:write', place('Run job', 'square-terminal', '/jobs/new')),
    ...may('modules:install', place('Install module', 'blocks', '/modules')),
    deed('Theme: system', 'monitor', () => chooseTheme('system')),
    deed('Theme: light', 'sun', () => chooseTheme('light')),
    deed('Theme: dark', 'moon', () => chooseTheme('dark')),
    deed('API reference', 'book-open', () => window.open('/docs', '_blank', 'noopener')),
    deed('Sign out', 'log-out', signOut),
  ]
}

const pageSize = 8
const longestName = 64

/** Normalises names as the platform does. */
const fold = (name: string): string => name.normalize('NFC').toLowerCase()

/** Clusters that match the text. Requested after a pause in typing; outdated requests are aborted. */
function useClusters(text: string, mayRead: boolean, navigate: Navigate) {
  const wanted = text.trim().slice(0, longestName)
  const search = useDebounced(wanted)
  const isWanted = mayRead && wanted !== '' && addressOf(wanted) === undefined
  const query = useQuery({
    queryKey: ['clusters', 'search', search],
    enabled: isWanted && search !== '' && addressOf(search) === undefined,
    queryFn: ({ signal }) => unwrap(api.GET('/api/v1/clusters', { params: { query: { search, pageSize } }, signal })),
    placeholderData: keepPreviousData,
  })
  const found = isWanted && search !== '' ? (query.data?.items ?? []) : []
  // Results of the previous text must not be opened by Enter.
  const fitting = found.filter(({ name }) => fold(name).includes(fold(wanted)))
  const items = fitting.map(({ id, name, status }): Command => {
    const run = () => void navigate({ to: '/clusters/$clusterId', params: { clusterId: id } })
    return { id, label: `${name} (${status})`, icon: 'server', isPlace: true, run }
  })
  return { items, isSearching: isWanted && (search !== wanted || query.isFetching) }
}
