import { defineModule, serve } from '@platform/modules'

await serve(
  defineModule({
    id: 'slow-job',
    version: '1.0.0',
    jobs: { forever: { description: 'Never ends.', intervalSeconds: 1, run: () => new Promise(() => {}) } },
  }),
)
