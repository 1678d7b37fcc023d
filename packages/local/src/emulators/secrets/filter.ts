import * as z from 'zod'
import type { Secret } from './secret.ts'

/** A filter of ListSecrets: a value matches the beginning of the name; a leading `!` negates it. */
export const Filter = z.object({ Key: z.literal('name'), Values: z.array(z.string()).min(1).max(10) })

/** Whether one of the filter's values matches the secret. */
export const matches = ({ Name }: Secret, { Values }: z.output<typeof Filter>): boolean =>
  Values.some((value) => Name.startsWith(value.replace(/^!/, '')) !== value.startsWith('!'))
