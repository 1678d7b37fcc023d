import type { ErrorDetail } from '@platform/contract/common'
import * as z from 'zod'
import { validationFailed } from '../error.ts'

/** Throws one detail per invalid field. Details contain no submitted values. */
export function parsePart<Schema extends z.ZodType>(
  part: ErrorDetail['in'],
  schema: Schema,
  value: unknown,
  under: readonly PropertyKey[] = [],
): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw validationFailed(
    parsed.error.issues.map((issue) => ({
      in: part,
      path: jsonPointer([...under, ...issue.path]),
      code: issue.code,
      message: issue.message.slice(0, 500),
    })),
  )
}

/** `under` is the path of the value in the request body. */
export const parseBody = <Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  under: readonly PropertyKey[] = [],
): z.output<Schema> => parsePart('body', schema, value, under)

/** As defined in RFC 6901. */
export const jsonPointer = (path: readonly PropertyKey[]): string =>
  path
    .map((segment) => `/${String(segment).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('')
    .slice(0, 500)

export const jsonString = <Schema extends z.ZodType>(schema: Schema) =>
  z
    .string()
    .transform((text): unknown => JSON.parse(text))
    .pipe(schema)
