import { defineModule, serve } from '@platform/modules'

/** Returns 5 MiB, which exceeds the response limit of Lambda. */
await serve(
  defineModule({
    id: 'large-response',
    version: '1.0.0',
    routes: (app) => void app.get('/api/large-response', (c) => c.body('x'.repeat(5 * 1024 * 1024))),
  }),
)
