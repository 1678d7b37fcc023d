import { defineModule, serve } from '@platform/modules'

/** Says which version of it answers. It lends its answers something that is gone once it is disposed of. */
const [version = '', how] = process.argv.slice(2)
let isOpen = false
const forever = new Promise<void>(() => undefined)

await serve(
  defineModule({
    id: 'versioned',
    version,
    jobs: { tick: { description: 'Ticks.', intervalSeconds: 1, run: ({ getLogger }) => getLogger().info('tick') } },
    async configure({ disposables }) {
      if (how === 'throws') throw new Error('This version cannot be configured.')
      if (how === 'hangs') await forever
      isOpen = true
      disposables.defer(() => void (isOpen = false))
    },
    routes(app) {
      app.get('/api/versioned', (c) => c.json({ version, isOpen }))
      app.get('/api/versioned/slow', async (c) => {
        await new Promise((resolve) => setTimeout(resolve, 700))
        return c.json({ version, isOpen })
      })
    },
  }),
)
