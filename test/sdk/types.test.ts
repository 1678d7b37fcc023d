import {
  defineModule,
  type EventBus,
  type EventData,
  type EventHandler,
  type ModuleEvent,
  type Slot,
} from '@platform/modules'
import { expectTypeOf, test } from 'vitest'

/** What follows it is compiled and never run. */
const isEver = Boolean(process.env['NO_SUCH_SETTING'])

declare module '@platform/modules' {
  interface EventRegistry {
    'module.greeter.greeted': { name: string }
  }
  interface SlotRegistry {
    'dashboard.widgets': { id: string; size: 'small' | 'large' }
  }
}

test('handlers get the data that the platform promises for their type', () => {
  type Data = EventData<'platform.cluster.status_changed'>
  expectTypeOf<Data['status']>().toEqualTypeOf<'Healthy' | 'Degraded' | 'Pending' | 'Offline'>()
  expectTypeOf<ModuleEvent<'platform.job.failed'>['organisationId']>().toBeString()
})

test('authors add types of events and slots by declaration merging', () => {
  expectTypeOf<EventData<'module.greeter.greeted'>>().toEqualTypeOf<{ name: string }>()
  expectTypeOf<EventData<'module.other.done'>>().toEqualTypeOf<Readonly<Record<string, unknown>>>()
  expectTypeOf<Extract<Slot, { slotId: 'dashboard.widgets' }>['size']>().toEqualTypeOf<'small' | 'large'>()
})

test('what cannot be does not compile', () => {
  type Subscribe = EventBus['subscribe']
  expectTypeOf<Subscribe>().toBeCallableWith('platform.job.failed', () => {})
  if (isEver) {
    const bus = {} as EventBus
    // @ts-expect-error There is no such event.
    bus.subscribe('platform.cluster.exploded', () => {})
    // @ts-expect-error The platform's events are not a module's to publish.
    void bus.publish('platform.cluster.deleted', {})
    // @ts-expect-error The data are others.
    void bus.publish('module.greeter.greeted', { name: 1 })
    // @ts-expect-error There is no such hook.
    defineModule({ id: 'a', version: '1.0.0', confgure: () => {} })
    // @ts-expect-error There is no such slot.
    defineModule({ id: 'a', version: '1.0.0', slots: [{ slotId: 'nav.nowhere', id: 'a' }] })
    // @ts-expect-error There is no such status.
    defineModule({ id: 'a', version: '1.0.0', healthChecks: { a: { tags: [], check: () => ({ status: 'Fine' }) } } })
  }
  expectTypeOf<EventHandler<'platform.job.failed'>>().parameter(0).toHaveProperty('data')
})
