import { defineModule, serve } from '@platform/modules'

/** Answers with 5 MiB, which a socket carries and Lambda does not. */
await serve(
  defineModule({
    id: 'large-answer',
    version: '1.0.0',
    routes: (app) => void app.get('/api/large-answer', (c) => c.body('x'.repeat(5 * 1024 * 1024))),
  }),
)
