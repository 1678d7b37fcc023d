import { expect, test } from 'vitest'
import { roleNames } from '@platform/contract/permission'
import { getNavigation } from '@platform/contract/portal'
import { iconNames } from '@platform/core/modules/icons'
import { navigation } from '@platform/core/dashboard/navigation'
import { countStoreCalls } from '../../support/store-calls.ts'
import { newCaller } from '../../support/fixtures.ts'
import { newModuleId, putModule, releaseFor } from '../support/modules.ts'

const slot = (id: string, more: object = {}) => ({
  slotId: 'nav.primary' as const,
  id,
  label: 'Hello World',
  icon: 'hand',
  route: `/modules/${id}`,
  order: 100,
  ...more,
})

const entriesOf = async (role: string) => (await navigation(await newCaller(undefined, role))).items

/** The ids of built-in entries that a role sees, in order. */
const builtIns = async (role: string) =>
  (await entriesOf(role)).filter(({ source }) => source === 'platform').map(({ id }) => id)

const sorted = (ids: string[]) => ids.toSorted()

test('everybody sees the built-in entries that they may use, in order', async () => {
  const primary = ['dashboard', 'account', 'clusters', 'jobs', 'modules', 'notifications', 'health']
  expect(sorted(await builtIns('Viewer'))).toEqual(sorted(primary))
  expect(sorted(await builtIns('Auditor'))).toEqual(sorted([...primary, 'audit']))
  expect(sorted(await builtIns('OrgAdmin'))).toEqual(sorted([...primary, 'users', 'webhooks', 'audit']))
  const all = [...primary, 'users', 'webhooks', 'audit', 'identity', 'organisations', 'updates']
  expect(sorted(await builtIns('PlatformAdmin'))).toEqual(sorted(all))
  expect(await builtIns('Nobody')).toEqual(['account', 'dashboard', 'notifications', 'health'])
})

test('built-in entries have places from 0 to 50, icons that exist and routes of their own', async () => {
  const entries = (await entriesOf('PlatformAdmin')).filter(({ source }) => source === 'platform')
  for (const { order, icon } of entries) {
    expect(order).toBeGreaterThanOrEqual(0)
    expect(order).toBeLessThanOrEqual(50)
    expect(iconNames.has(icon), icon).toBe(true)
  }
  expect(new Set(entries.map(({ route }) => route)).size).toBe(entries.length)
})

test('a module that serves adds its slots, while it is upgraded as well; one that does not serve adds none', async () => {
  const states = ['Running', 'Upgrading', 'Installing', 'Failed', 'Uninstalling'] as const
  const ids = states.map(() => newModuleId())
  for (const [place, state] of states.entries()) {
    const id = ids[place] ?? ''
    await putModule(releaseFor(id, { spec: { navSlots: [slot(id)] } }), { state })
  }
  const [running = '', upgrading = ''] = ids
  const shown = (await entriesOf('Viewer')).filter(({ id }) => ids.includes(id))
  expect(shown.map(({ id }) => id).toSorted()).toEqual([running, upgrading].toSorted())
  expect(shown).toContainEqual({ ...slot(running), source: `module:${running}` })
})

const slots = (id: string) => [slot(`${id}-z`, { order: 3 }), slot(`${id}-y`, { order: 3, slotId: 'nav.settings' })]

test('entries are in the order of their places, and of their ids where places are the same', async () => {
  const [a, b] = [newModuleId(), newModuleId()].toSorted()
  for (const id of [b, a]) await putModule(releaseFor(id ?? '', { spec: { navSlots: slots(id ?? '') } }))
  const items = await entriesOf('PlatformAdmin')
  const places = items.map(({ order, id }) => `${String(order).padStart(5, '0')} ${id}`)
  expect(places).toEqual(places.toSorted())
  expect(getNavigation.responses[200].content['application/json'].schema.parse({ items })).toEqual({ items })
})

test('the navigation takes one call, whatever the role', async () => {
  for (const role of roleNames) {
    const caller = await newCaller(undefined, role)
    expect(await countStoreCalls(() => navigation(caller))).toBe(1)
  }
})
