import { defineModule, serve } from '@platform/modules'

await serve(
  defineModule({ id: 'ends-soon', version: '1.0.0', start: () => void setTimeout(() => process.exit(5), 50) }),
)
