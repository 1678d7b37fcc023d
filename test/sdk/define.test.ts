import {
  defineModule,
  type ModuleDefinition,
  type EventBus,
  type EventData,
  type EventHandler,
  type ModuleEvent,
  type Slot,
} from '@platform/modules'
import { expect, expectTypeOf, test } from 'vitest'

/** Code behind this condition is compiled but never run. */
const isNever = Boolean(process.env['NO_SUCH_SETTING'])

declare module '@platform/modules' {
  interface EventRegistry {
    'module.greeter.greeted': { name: string }
  }
  interface SlotRegistry {
    'dashboard.widgets': { id: string; size: 'small' | 'large' }
  }
}

test('handlers receive the data type of their event', () => {
  type Data = EventData<'platform.cluster.status_changed'>
  expectTypeOf<Data['status']>().toEqualTypeOf<'Healthy' | 'Degraded' | 'Pending' | 'Offline'>()
  expectTypeOf<ModuleEvent<'platform.job.failed'>['organisationId']>().toBeString()
})

test('authors add events and slots by declaration merging', () => {
  expectTypeOf<EventData<'module.greeter.greeted'>>().toEqualTypeOf<{ name: string }>()
  expectTypeOf<EventData<'module.other.done'>>().toEqualTypeOf<Readonly<Record<string, unknown>>>()
  expectTypeOf<Extract<Slot, { slotId: 'dashboard.widgets' }>['size']>().toEqualTypeOf<'small' | 'large'>()
})

test('invalid definitions do not compile', () => {
  type Subscribe = EventBus['subscribe']
  expectTypeOf<Subscribe>().toBeCallableWith('platform.job.failed', () => {})
  if (isNever) {
    const bus = {} as EventBus
    // @ts-expect-error An unknown event.
    bus.subscribe('platform.cluster.exploded', () => {})
    // @ts-expect-error An event of the platform.
    void bus.publish('platform.cluster.deleted', {})
    // @ts-expect-error Invalid data.
    void bus.publish('module.greeter.greeted', { name: 1 })
    // @ts-expect-error An unknown hook.
    defineModule({ id: 'a', version: '1.0.0', confgure: () => {} })
    // @ts-expect-error An unknown slot.
    defineModule({ id: 'a', version: '1.0.0', slots: [{ slotId: 'nav.nowhere', id: 'a' }] })
    // @ts-expect-error An unknown status.
    defineModule({ id: 'a', version: '1.0.0', healthChecks: { a: { tags: [], check: () => ({ status: 'Fine' }) } } })
  }
  expectTypeOf<EventHandler<'platform.job.failed'>>().parameter(0).toHaveProperty('data')
})

const validModule = { id: 'sample', version: '1.0.0' } satisfies ModuleDefinition
const slot = { slotId: 'nav.primary', id: 'a', label: 'A', icon: 'hand', route: '/modules/sample', order: 100 } as const
const healthyCheck = { tags: [], check: () => ({ status: 'Healthy' as const }) }
const job = (intervalSeconds: number) => ({ description: 'Works.', intervalSeconds, run: () => {} })

test.for([
  ['an id that is not kebab-case', { ...validModule, id: 'Sample' }, '"Sample"'],
  ['an empty id', { ...validModule, id: '' }, '""'],
  ['a version that is not SemVer', { ...validModule, version: '1.0' }, '1.0'],
  ['text after the version', { ...validModule, version: '1.2.3junk' }, '1.2.3junk'],
  ['a leading zero in the version', { ...validModule, version: '01.2.3' }, '01.2.3'],
  ['an underscore in the version', { ...validModule, version: '1.2.3-a_b' }, '1.2.3-a_b'],
  ['an invalid name of a health check', { ...validModule, healthChecks: { 'a b': healthyCheck } }, 'a b'],
  ['a job id with a slash', { ...validModule, jobs: { 'x/y': job(60) } }, 'x/y'],
  ['an interval of 0 seconds', { ...validModule, jobs: { beat: job(0) } }, '0 seconds'],
  ['an interval of more than a day', { ...validModule, jobs: { beat: job(86_401) } }, '86401'],
  ['an interval of half a second', { ...validModule, jobs: { beat: job(0.5) } }, '0.5'],
  ['two slots with one id', { ...validModule, slots: [slot, { ...slot, order: 2 }] }, 'nav.primary/a'],
] as const satisfies [string, ModuleDefinition, string][])('rejects a module with %s', ([, definition, named]) => {
  expect(() => defineModule(definition)).toThrow(named)
})

test('accepts an id in two slots, and intervals of a second and a day, and freezes the definition', () => {
  expect(() => defineModule({ ...validModule, slots: [slot, { ...slot, slotId: 'nav.settings' }] })).not.toThrow()
  const definition = defineModule({ ...validModule, jobs: { often: job(1), daily: job(86_400) } })
  expect(() => Object.assign(definition, { id: 'other' })).toThrow(TypeError)
})
