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
    'an invalid name of a health check',
    { ...valid, healthChecks: { 'a b': { tags: [], check: () => ({ status: 'Healthy' }) } } },
    'a b',
  ],
  ['a job id with a slash', { ...valid, jobs: { 'x/y': job(60) } }, 'x/y'],
  ['an interval of 0 seconds', { ...valid, jobs: { beat: job(0) } }, '0 seconds'],
  ['an interval of more than a day', { ...valid, jobs: { beat: job(86_401) } }, '86401'],
  ['an interval of half a second', { ...valid, jobs: { beat: job(0.5) } }, '0.5'],
  ['two slots with one id', { ...valid, slots: [slot, { ...slot, order: 2 }] }, 'nav.primary/a'],
] as const satisfies [string, ModuleDefinition, string][])('rejects a module with %s', ([, definition, named]) => {
  expect(() => defineModule(definition)).toThrow(named)
})

test('accepts an id in two slots, and intervals of a second and a day', () => {
  expect(() => defineModule({ ...valid, slots: [slot, { ...slot, slotId: 'nav.settings' }] })).not.toThrow()
  expect(() => defineModule({ ...valid, jobs: { often: job(1), daily: job(86_400) } })).not.toThrow()
})

test('freezes the definition', () => {
  const definition = defineModule({ ...valid })
  expect(() => Object.assign(definition, { id: 'other' })).toThrow(TypeError)
})
