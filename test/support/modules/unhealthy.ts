import { defineModule, serve } from '@platform/modules'

/** Runs, and is never well. */
await serve(
  defineModule({
    id: 'unhealthy',
    version: '1.0.0',
    healthChecks: {
      database: { tags: ['critical'], check: () => ({ status: 'Unhealthy', description: 'No database.' }) },
    },
  }),
)
