import { defineModule, serve } from '@platform/modules'

await serve(defineModule({ id: 'ignores-sigterm', version: '1.0.0' }))
process.removeAllListeners('SIGTERM')
process.on('SIGTERM', () => console.log('I stay.'))
