import {
  defineModule,
  type EventBus,
  type EventData,
  type EventHandler,
  type ModuleEvent,
  type Slot,
} from '@platform/modules'
import { expectTypeOf, test } from 'vitest'

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
