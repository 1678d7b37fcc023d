import { callerOf, defineModule, serve } from '@platform/modules'

await serve(
  defineModule({
    id: 'calm',
    version: '1.0.0',
    slots: [{ slotId: 'nav.primary', id: 'calm', label: 'Calm', icon: 'sailboat', route: '/modules/calm', order: 200 }],
    healthChecks: { calmness: { tags: ['critical'], check: () => ({ status: 'Healthy' }) } },
    jobs: {
      count: {
        description: 'Counts to one.',
        intervalSeconds: 30,
        run: ({ eventBus }) => eventBus.publish('module.calm.counted', { to: 1 }),
      },
    },
    configureServices: () => console.log('configureServices'),
    configure({ eventBus, disposables }) {
      console.log('configure')
      disposables.use(eventBus.subscribe('platform.job.completed', ({ data }) => console.log('event', data.jobId)))
      disposables.defer(() => console.log('disposables'))
    },
    start: () => console.log('start'),
    stop: () => console.log('stop'),
    dispose: () => console.log('dispose'),
    routes(app, { orgId, module, isPersistent }) {
      app.get('/api/calm', (c) => c.json({ orgId, module, isPersistent }))
      app.get('/api/calm/caller', (c) => c.json(callerOf(c)))
      app.get('/api/calm/headers', (c) => c.json(c.req.header()))
      app.all('/api/calm/echo', async (c) => c.body(await c.req.arrayBuffer(), 200, { 'x-method': c.req.method }))
      app.get('/api/calm/slow', async (c) => {
        console.log('slow started')
        await new Promise((resolve) => setTimeout(resolve, 700))
        return c.text('slow done')
      })
      app.get('/modules/calm', (c) => c.html('<!doctype html><title>Calm</title><h1>Calm</h1>'))
    },
  }),
)
