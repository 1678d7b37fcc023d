import { defineModule, serve } from '@platform/modules'

/** Prints 100 MB without a line break at each call of its route, and without end when asked to. */
const chunk = 'x'.repeat(1_000_000)

await serve(
  defineModule({
    id: 'prints-much',
    version: '1.0.0',
    routes(app) {
      app.get('/api/prints-much', async (c) => {
        for (let count = 0; count < 100; count += 1) {
          await new Promise<void>((resolve) => process.stdout.write(chunk, () => resolve()))
        }
        return c.text('printed')
      })
    },
  }),
)
