import { defineModule, serve } from '@platform/modules'

let count = 0

await serve(
  defineModule({
    id: 'healthy-later',
    version: '1.0.0',
    healthChecks: {
      warmth: { tags: ['critical'], check: () => ({ status: (count += 1) < 3 ? 'Unhealthy' : 'Healthy' }) },
    },
  }),
)
