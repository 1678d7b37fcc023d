import { serve } from '@platform/modules'
import { type Failure, type Hook, misbehaving } from './misbehaving.ts'

const [failure, hook] = process.argv.slice(2) as [Failure, Hook]
await serve(misbehaving(failure, hook))
