import { defineModule, serve } from '@platform/modules'

/** Arguments: id, version, and `throws` to fail in `configure`. `isOpen` becomes false when the module is disposed. */
const [id = '', version = '', failure] = process.argv.slice(2)
let isOpen = false

await serve(
  defineModule({
    id,
    version,
    jobs: { tick: { description: 'Ticks.', intervalSeconds: 1, run: ({ getLogger }) => getLogger().info('tick') } },
    configure({ disposables, eventBus, getLogger }) {
      const logEvent = ({ subject = '' }) => getLogger().info(`heard of ${subject}`)
      disposables.use(eventBus.subscribe('platform.cluster.registered', logEvent))
      if (failure === 'throws') throw new Error('This version cannot be configured.')
      isOpen = true
      disposables.defer(() => void (isOpen = false))
    },
    routes(app) {
      app.get(`/api/${id}`, (c) => c.json({ version, isOpen }))
      app.get(`/api/${id}/slow`, async (c) => {
        await new Promise((resolve) => setTimeout(resolve, 700))
        return c.json({ version, isOpen })
      })
    },
  }),
)
