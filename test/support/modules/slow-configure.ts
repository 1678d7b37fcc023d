import { setTimeout as delay } from 'node:timers/promises'
import { defineModule, serve } from '@platform/modules'

await serve(
  defineModule({
    id: 'slow-configure',
    version: '1.0.0',
    async configure({ getLogger }) {
      await delay(500)
      getLogger().info('configured')
    },
    start(_signal, { getLogger }) {
      getLogger().info('start')
      throw new Error('Not today.')
    },
  }),
)
