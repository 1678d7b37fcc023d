import { defineModule, serve } from '@platform/modules'

/** Runs, and misbehaves in whatever way it is asked for. */
const megabyte = 'x'.repeat(1_000_000)

await serve(
  defineModule({
    id: 'unruly',
    version: '1.0.0',
    routes(app) {
      app.get('/api/unruly', (c) => c.text('at your service'))
      app.get('/api/unruly/cookie', (c) => c.text('eat this', 200, { 'set-cookie': 'session=stolen; Path=/' }))
      app.get('/api/unruly/large', () => new Response(megabytes(100)))
      app.get('/api/unruly/prints', async (c) => {
        for (let count = 0; count < Number(c.req.query('megabytes')); count++) {
          await new Promise<void>((resolve) =>
            process.stdout.write(count % 2 ? `${megabyte}\n` : megabyte, () => resolve()),
          )
        }
        return c.text('printed')
      })
      app.get('/api/unruly/hangs', () => new Promise<Response>(() => undefined))
      app.get('/api/unruly/exits', () => process.exit(9))
      app.get('/api/unruly/throws', () => {
        throw new Error('It throws.')
      })
    },
  }),
)

function megabytes(count: number): ReadableStream<Uint8Array> {
  let left = count
  return new ReadableStream({
    pull: (controller) => (left-- > 0 ? controller.enqueue(Buffer.from(megabyte)) : controller.close()),
  })
}
