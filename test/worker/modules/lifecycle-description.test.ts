import { type NavSlot } from '@platform/contract/manifest'
import { slotWarning } from '@platform/contract/module'
import { warningsOf } from '@platform/worker/modules/lifecycle/description'
import { type Description } from '@platform/modules/protocol'
import { expect, test } from 'vitest'
import { manifestFor } from '../../support/module-manifest.ts'

const one: NavSlot = { slotId: 'nav.primary', id: 'one', label: 'One', icon: 'hand', route: '/modules/m', order: 100 }
const two: NavSlot = {
  slotId: 'nav.settings',
  id: 'two',
  label: 'Two',
  icon: 'cog',
  route: '/modules/m/two',
  order: 110,
}

const { order, route, ...others } = one
const reversed: NavSlot = { order, route, ...others }

const described: Description = {
  sdkVersion: '0.3.0',
  id: 'm',
  version: '1.0.0',
  state: 'Loading',
  slots: [{ ...one }, { ...two }],
  healthChecks: [],
  jobs: [],
  subscriptions: [],
}

test.for([
  ['are the same', [one, two]],
  ['stand in another order', [two, one]],
  ['have their members in another order', [reversed, two]],
] as const)('slots that %s agree', ([, navSlots]) => {
  expect(warningsOf(described, manifestFor('m', { navSlots: [...navSlots] }))).toEqual([])
})

test.for([
  ['are missing in the manifest', [one]],
  ['are missing in the code', [one, two, { ...one, id: 'three' }]],
  ['are twice in the manifest', [one, two, two]],
  ['have another id', [{ ...one, id: 'uno' }, two]],
  ['have another label', [{ ...one, label: 'Uno' }, two]],
  ['have another icon', [{ ...one, icon: 'cog' }, two]],
  ['have another route', [{ ...one, route: '/modules/m/x' }, two]],
  ['have another order', [{ ...one, order: 101 }, two]],
  ['are in another slot', [{ ...one, slotId: 'nav.settings' }, two]],
] as [string, NavSlot[]][])('slots that %s are a warning', ([, navSlots]) => {
  expect(warningsOf(described, manifestFor('m', { navSlots }))).toEqual([slotWarning])
})

test('a slot of the code that has a member too many is a warning', () => {
  const slots = [{ ...one, hidden: true }, { ...two }]
  expect(warningsOf({ ...described, slots }, manifestFor('m', { navSlots: [one, two] }))).toEqual([slotWarning])
})

test('a version or job that the code does not have is a warning as well', () => {
  const backgroundJobs = [
    { id: 'beat', description: 'Beats.', intervalSeconds: 60 },
    { id: 'rest', description: 'Rests.', intervalSeconds: 60 },
  ]
  const manifest = manifestFor('m', { navSlots: [one, two], backgroundJobs })
  const jobs = [{ id: 'rest', description: 'Rests.', intervalSeconds: 60 }]
  expect(warningsOf({ ...described, version: '1.0.1', jobs }, manifest)).toEqual([
    expect.stringContaining('version'),
    expect.stringContaining('job beat'),
  ])
})

test('of a manifest with which nothing agrees no more is told than a module shows', () => {
  const backgroundJobs = Array.from({ length: 20 }, (_, index) => {
    return { id: `job-${index}`, description: 'Is not there.', intervalSeconds: 60 }
  })
  expect(warningsOf({ ...described, version: '1.0.1' }, manifestFor('m', { backgroundJobs }))).toHaveLength(20)
})
