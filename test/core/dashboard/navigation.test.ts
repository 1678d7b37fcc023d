import { roleNames } from '@platform/contract/permission'
import { getNavigation } from '@platform/contract/portal'
import { navigation } from '@platform/core/dashboard/navigation'
import { iconNames } from '@platform/core/modules/icons'
import { expect, test } from 'vitest'
import { newCaller } from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
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

const entriesFor = async (role: string) => (await navigation(await newCaller(undefined, role))).items
const builtInsFor = async (role: string) => (await entriesFor(role)).filter(({ source }) => source === 'platform')
const builtInIds = async (role: string) => (await builtInsFor(role)).map(({ id }) => id)

const viewerIds = ['dashboard', 'account', 'clusters', 'jobs', 'modules', 'notifications', 'health']
const adminIds = [...viewerIds, 'users', 'webhooks', 'audit']
test.each([
  ['Viewer', viewerIds],
  ['Auditor', [...viewerIds, 'audit']],
  ['OrgAdmin', adminIds],
  ['PlatformAdmin', [...adminIds, 'identity', 'organisations', 'updates']],
])('%s has the permitted built-in entries', async (role, ids) => {
  expect((await builtInIds(role)).toSorted()).toEqual(ids.toSorted())
})

test('built-in entries have an order from 0 to 50, existing icons and unique routes', async () => {
  expect(await builtInIds('Unknown')).toEqual(['account', 'dashboard', 'notifications', 'health'])
  const entries = await builtInsFor('PlatformAdmin')
  for (const { order, icon } of entries) {
    expect(order).toBeGreaterThanOrEqual(0)
    expect(order).toBeLessThanOrEqual(50)
    expect(iconNames.has(icon), icon).toBe(true)
  }
  expect(new Set(entries.map(({ route }) => route)).size).toBe(entries.length)
})

test('includes entries of running and upgrading modules only', async () => {
  const states = ['Running', 'Upgrading', 'Installing', 'Failed', 'Uninstalling'] as const
  const ids = states.map(() => newModuleId())
  for (const [index, state] of states.entries()) {
    const id = ids[index]!
    await putModule(releaseFor(id, { spec: { navSlots: [slot(id)] } }), { state })
  }
  const entries = (await entriesFor('Viewer')).filter(({ id }) => ids.includes(id))
  expect(entries.map(({ id }) => id).toSorted()).toEqual(ids.slice(0, 2).toSorted())
  expect(entries).toContainEqual({ ...slot(ids[0]!), source: `module:${ids[0]}` })
})

test('sorts entries by order and id', async () => {
  for (const id of [newModuleId(), newModuleId()].toSorted().toReversed()) {
    const navSlots = [slot(`${id}-z`, { order: 3 }), slot(`${id}-y`, { order: 3, slotId: 'nav.settings' })]
    await putModule(releaseFor(id, { spec: { navSlots } }))
  }
  const items = await entriesFor('PlatformAdmin')
  const sortKeys = items.map(({ order, id }) => `${String(order).padStart(5, '0')} ${id}`)
  expect(sortKeys).toEqual(sortKeys.toSorted())
  expect(getNavigation.responses[200].content['application/json'].schema.parse({ items })).toEqual({ items })
})

test.each(roleNames)('takes one call for %s', async (role) => {
  const caller = await newCaller(undefined, role)
  expect(await countStoreCalls(() => navigation(caller))).toBe(1)
})
