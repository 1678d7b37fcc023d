import * as z from 'zod'
import { AwsServiceError } from '@platform/local/emulators/http/error'
import type { JsonObject } from '@platform/local/emulators/http/request'
import type { Lambda } from './lambda.ts'

/** One action of the API. Its input has the members of the SDK's, from path, query or body. */
export type Operation = (lambda: Lambda, input: JsonObject) => JsonObject | Promise<JsonObject>

/** An operation with a validated input; errors never repeat a value. */
export function operation<Schema extends z.ZodType>(
  schema: Schema,
  perform: (lambda: Lambda, request: z.output<Schema>) => JsonObject | Promise<JsonObject>,
): Operation {
  return (lambda, input) => {
    const request = schema.safeParse(input)
    if (!request.success) throw new AwsServiceError('ValidationException', z.prettifyError(request.error))
    return perform(lambda, request.data)
  }
}

export const named = { FunctionName: z.string().min(1).max(170), Qualifier: z.string().min(1).max(128).optional() }

export const pageMembers = {
  Marker: z.string().optional(),
  MaxItems: z.coerce.number().int().min(1).max(10_000).default(50),
}

/** Lambda's page size for functions and versions. */
const maximumPage = 50

/** One page of a sorted list, and the marker of the next one. */
export function page<Item>(
  items: readonly Item[],
  placeOf: (item: Item) => string,
  { Marker = '', MaxItems }: { Marker?: string | undefined; MaxItems: number },
): { items: Item[]; NextMarker?: string } {
  const rest = items.filter((item) => placeOf(item) > Marker)
  const found = rest.slice(0, Math.min(MaxItems, maximumPage))
  const last = found.at(-1)
  return { items: found, ...(last !== undefined && found.length < rest.length && { NextMarker: placeOf(last) }) }
}
