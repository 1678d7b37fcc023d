import { defineModule, serve } from '@platform/modules'

/** The id in its code differs from the manifest. */
await serve(defineModule({ id: 'quite-another', version: '1.0.0', configure: () => console.log('configure') }))
