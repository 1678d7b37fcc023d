import type * as z from 'zod'

/** Refuses a body that is not what the contract describes: wrong, lacking or telling more. Values are not repeated. */
export function validateResponse(schema: z.ZodType, text: string): void {
  const arrives: unknown = JSON.parse(text)
  const extra = additions(arrives, schema.parse(arrives), '')
  if (extra.length > 0) throw new Error(`The answer tells more than the contract: ${extra.join(', ')}`)
}

/** The paths of members that the contract does not name: parsing has left them out. */
function additions(arrives: unknown, described: unknown, path: string): string[] {
  if (typeof arrives !== 'object' || arrives === null) return []
  if (typeof described !== 'object' || described === null) return [path]
  const known = new Map(Object.entries(described))
  return Object.entries(arrives).flatMap(([name, value]) =>
    known.has(name) ? additions(value, known.get(name), `${path}/${name}`) : [`${path}/${name}`],
  )
}
