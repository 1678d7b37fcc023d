import type { SlotId } from '@platform/contract/manifest'
import type { Permission } from '@platform/contract/permission'
import type { NavigationEntry } from '@platform/contract/portal'
import type { Caller } from '../caller.ts'
import { isServing, readModules } from '../modules/module.ts'
import type { ModuleRecord } from '../modules/record.ts'

interface BuiltInEntry {
  entry: NavigationEntry
  permission: Permission | undefined
}

const entryFactory =
  (slotId: SlotId, folder: string) =>
  (order: number, id: string, label: string, icon: string, permission?: Permission): BuiltInEntry => ({
    entry: { slotId, id, label, icon, route: `${folder}/${id}`, order, source: 'platform' },
    permission,
  })

const primaryEntry = entryFactory('nav.primary', '')
const settings = entryFactory('nav.settings', '/settings')

/** The values of `order` are from 0 to 50, as the manifest schema documents. */
const builtInEntries: readonly BuiltInEntry[] = [
  primaryEntry(0, 'dashboard', 'Dashboard', 'layout-dashboard'),
  primaryEntry(10, 'clusters', 'Clusters', 'server', 'clusters:read'),
  primaryEntry(15, 'nodes', 'Nodes', 'network', 'clusters:read'),
  primaryEntry(20, 'jobs', 'Jobs', 'square-terminal', 'jobs:read'),
  primaryEntry(30, 'modules', 'Modules', 'blocks', 'modules:read'),
  primaryEntry(40, 'notifications', 'Notifications', 'bell'),
  primaryEntry(50, 'health', 'Health', 'heart-pulse'),
  settings(0, 'account', 'Account', 'circle-user'),
  settings(10, 'users', 'Users', 'users', 'users:admin'),
  settings(20, 'webhooks', 'Webhooks', 'webhook', 'users:admin'),
  settings(25, 'audit', 'Audit trail', 'scroll-text', 'audit:read'),
  settings(30, 'identity', 'Identity providers', 'key-round', 'platform:admin'),
  settings(40, 'organisations', 'Organisations', 'building-2', 'platform:admin'),
  settings(50, 'updates', 'Updates', 'circle-arrow-up', 'platform:admin'),
]

export const navigation = async (caller: Caller): Promise<{ items: NavigationEntry[] }> =>
  navigationOf(caller, (await readModules()).modules)

export function navigationOf({ permissions }: Caller, modules: readonly ModuleRecord[]): { items: NavigationEntry[] } {
  const permittedEntries = builtInEntries.filter(
    ({ permission }) => permission === undefined || permissions.has(permission),
  )
  const entries = [...permittedEntries.map(({ entry }) => entry), ...modules.filter(isServing).flatMap(entriesOf)]
  return { items: entries.toSorted((a, b) => a.order - b.order || compare(a.id, b.id) || compare(a.source, b.source)) }
}

const entriesOf = ({ id, release }: ModuleRecord): NavigationEntry[] =>
  release.manifest.spec.navSlots.map((slot) => Object.assign({ source: `module:${id}` }, slot))

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))
