import { defineModule, serve } from '@platform/modules'

await serve(
  defineModule({
    id: 'unhealthy',
    version: '1.0.0',
    healthChecks: {
      database: { tags: ['critical'], check: () => ({ status: 'Unhealthy', description: 'No database.' }) },
    },
  }),
)
