import { defineModule, serve } from '@platform/modules'

/** Its code has another id than its manifest, which says `other-id`. */
await serve(defineModule({ id: 'quite-another', version: '1.0.0', configure: () => console.log('configure') }))
