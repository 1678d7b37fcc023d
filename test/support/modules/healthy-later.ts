import { defineModule, serve } from '@platform/modules'

let count = 0

/** Becomes healthy at the third health check. */
await serve(
  defineModule({
    id: 'healthy-later',
    version: '1.0.0',
    healthChecks: {
      warmth: { tags: ['critical'], check: () => ({ status: (count += 1) < 3 ? 'Unhealthy' : 'Healthy' }) },
    },
  }),
)
