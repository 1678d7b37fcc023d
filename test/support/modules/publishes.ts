import { defineModule, serve } from '@platform/modules'

await serve(
  defineModule({
    id: 'publishes',
    version: '1.0.0',
    configure: async ({ eventBus }) => {
      eventBus.subscribe('platform.cluster.deleted', ({ subject }) =>
        eventBus.publish('module.publishes.noticed', {}, { subject }),
      )
      await eventBus.publish('module.publishes.configured', {})
    },
    start: (_signal, { eventBus }) => eventBus.publish('module.publishes.started', { at: 'once' }, { subject: 'me' }),
    stop: (_signal, { eventBus }) => eventBus.publish('module.publishes.stopped', {}),
    dispose: ({ eventBus }) => eventBus.publish('module.publishes.disposed', {}),
  }),
)
