import { defineModule, serve } from '@platform/modules'

await serve(defineModule({ id: 'quite-another', version: '1.0.0', configure: () => console.log('configure') }))
