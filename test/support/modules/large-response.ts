import { defineModule, serve } from '@platform/modules'

/** Returns 5 MiB, which exceeds the limit of the SDK for responses on Lambda (4 MiB). */
await serve(
  defineModule({
    id: 'large-response',
    version: '1.0.0',
    routes: (app) => void app.get('/api/large-response', (c) => c.body('x'.repeat(5 * 1024 * 1024))),
  }),
)
