import * as z from 'zod'
import type { Secret } from './secret.ts'

/** A filter of ListSecrets: a value matches the beginning of a member; a leading `!` negates it. */
export const Filter = z.object({
  Key: z.enum(['name', 'description', 'tag-key', 'tag-value', 'all']),
  Values: z.array(z.string()).min(1).max(10),
})

/** Whether one of the filter's values matches the secret. */
export function matches(secret: Secret, { Key: key, Values: values }: z.output<typeof Filter>): boolean {
  const members = membersOf(secret)
  return values.some((value) => {
    const pattern = value.replace(/^!/, '')
    const isMatch =
      key === 'all'
        ? Object.values(members)
            .flat()
            .some((text) => text.toLowerCase().includes(pattern.toLowerCase()))
        : members[key].some((text) => startsWith(text, pattern, key === 'description'))
    return isMatch !== value.startsWith('!')
  })
}

function membersOf({ Name, Description = '', Tags = [] }: Secret) {
  return {
    name: [Name],
    description: [Description],
    'tag-key': Tags.map((tag) => tag.Key),
    'tag-value': Tags.map((tag) => tag.Value),
  }
}

function startsWith(text: string, prefix: string, ignoreCase: boolean): boolean {
  return ignoreCase ? text.toLowerCase().startsWith(prefix.toLowerCase()) : text.startsWith(prefix)
}
