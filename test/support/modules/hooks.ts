import { serve } from '@platform/modules'
import { type Hook, misbehaving, type Way } from './misbehaving.ts'

const [how, hook] = process.argv.slice(2) as [Way, Hook]
await serve(misbehaving(how, hook))
