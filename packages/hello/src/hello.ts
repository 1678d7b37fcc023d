import { defineModule } from '@platform/modules'
import { greeter, Greeter } from './greeter.ts'
import { page } from './page.ts'

/** The reference module, with one example of each feature. */
export const hello = defineModule({
  id: 'hello',
  version: '1.0.0',

  slots: [
    { slotId: 'nav.primary', id: 'hello', label: 'Hello World', icon: 'hand', route: '/modules/hello', order: 100 },
  ],

  healthChecks: {
    'hello-module': {
      tags: ['informational'],
      check: () => ({ status: 'Healthy', description: 'Greetings are available.' }),
    },
  },

  jobs: {
    heartbeat: {
      description: 'Logs that the module is alive.',
      intervalSeconds: 60,
      run: (context) => context.getLogger('heartbeat').info('The hello module is alive'),
    },
  },

  configureServices(services) {
    services.addSingleton(Greeter, greeter)
  },

  configure({ eventBus, disposables, getLogger }) {
    const log = getLogger('clusters')
    disposables.use(
      eventBus.subscribe('platform.cluster.status_changed', ({ data }) => {
        log.info('A cluster has changed its status', { cluster: data.name, status: data.status })
      }),
    )
  },

  start(_signal, { getLogger, isPersistent }) {
    getLogger('lifecycle').info('Hello', { isPersistent })
  },

  stop(_signal, { getLogger }) {
    getLogger('lifecycle').info('Goodbye')
  },

  routes(app, { module, services }) {
    const { greeting, greet } = services.get(Greeter)
    app.get('/api/hello', (c) => c.json(greet(module)))
    app.get('/modules/hello', (c) => c.html(page(greeting, module.version)))
  },
})
