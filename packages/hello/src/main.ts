import { serve } from '@platform/modules'
import { hello } from './hello.ts'

await serve(hello)
