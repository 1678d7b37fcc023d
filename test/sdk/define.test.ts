import { defineModule, type ModuleDefinition } from '@platform/modules'
import { expect, test } from 'vitest'

const valid = { id: 'sample', version: '1.0.0' } satisfies ModuleDefinition
const slot = { slotId: 'nav.primary', id: 'a', label: 'A', icon: 'hand', route: '/modules/sample', order: 100 } as const
const job = (intervalSeconds: number) => ({ description: 'Works.', intervalSeconds, run: () => {} })

test.for([
  ['an id that is not kebab-case', { ...valid, id: 'Sample' }, '"Sample"'],
  ['an empty id', { ...valid, id: '' }, '""'],
  ['a version that is not SemVer', { ...valid, version: '1.0' }, '1.0'],
  [
    'a name of a health check',
    { ...valid, healthChecks: { 'a b': { tags: [], check: () => ({ status: 'Healthy' }) } } },
    'a b',
  ],
  ['an id of a job', { ...valid, jobs: { 'x/y': job(60) } }, 'x/y'],
  ['an interval of no seconds', { ...valid, jobs: { beat: job(0) } }, '0 seconds'],
  ['an interval of more than a day', { ...valid, jobs: { beat: job(86_401) } }, '86401'],
  ['an interval of half a second', { ...valid, jobs: { beat: job(0.5) } }, '0.5'],
  ['two slots of one id', { ...valid, slots: [slot, { ...slot, order: 2 }] }, 'nav.primary/a'],
] as const satisfies [string, ModuleDefinition, string][])(
  'a module with %s is refused by name',
  ([, definition, named]) => {
    expect(() => defineModule(definition)).toThrow(named)
  },
)

test('one id may be used in two slots', () => {
  expect(() => defineModule({ ...valid, slots: [slot, { ...slot, slotId: 'nav.settings' }] })).not.toThrow()
})

test('the interval of a job may be a second or a day', () => {
  expect(() => defineModule({ ...valid, jobs: { often: job(1), daily: job(86_400) } })).not.toThrow()
})

test('a defined module does not change any more', () => {
  const definition = defineModule({ ...valid })
  expect(() => Object.assign(definition, { id: 'other' })).toThrow(TypeError)
})
