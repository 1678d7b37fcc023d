import * as z from 'zod'
import type { Secret } from './secret.ts'

/** Filter of ListSecrets. A value matches the beginning of a name; a leading `!` negates it. */
export const Filter = z.object({ Key: z.literal('name'), Values: z.array(z.string()).min(1).max(10) })

export const matches = ({ Name }: Secret, { Values }: z.output<typeof Filter>): boolean =>
  Values.some((value) => Name.startsWith(value.replace(/^!/, '')) !== value.startsWith('!'))
