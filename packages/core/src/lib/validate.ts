import type { ErrorDetail } from '@platform/contract/common'
import * as z from 'zod'
import { validationFailedError } from '../error.ts'

export const maxDetails = 50
/** Longer names are not compared with known names. */
const maxNameLength = 40

/** Throws `validation_failed` with at most 50 details, which contain no submitted values. */
export function parsePart<Schema extends z.ZodType>(
  part: ErrorDetail['in'],
  schema: Schema,
  value: unknown,
  parentPath: readonly PropertyKey[] = [],
): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const details: ErrorDetail[] = []
  for (const issue of parsed.error.issues) {
    if (details.length >= maxDetails) break
    if (issue.code === 'unrecognized_keys') details.push(...unknownNames(part, schema, issue, parentPath))
    else {
      const path = jsonPointer([...parentPath, ...issue.path])
      details.push({ in: part, path, code: issue.code, message: issue.message.slice(0, 500), ...positionOf(issue) })
    }
  }
  throw validationFailedError(details)
}

function positionOf(issue: z.core.$ZodIssue): Pick<ErrorDetail, 'position'> {
  const position: unknown = issue.code === 'custom' ? issue.params?.['position'] : undefined
  return typeof position === 'number' ? { position } : {}
}

function unknownNames(
  part: ErrorDetail['in'],
  schema: z.ZodType,
  { keys, path }: z.core.$ZodIssueUnrecognizedKeys,
  parentPath: readonly PropertyKey[],
): ErrorDetail[] {
  const [code, noun] = part === 'query' ? ['unknown_parameter', 'parameter'] : ['unknown_field', 'field']
  const knownNames = memberNames(schema, path)
  return keys.slice(0, maxDetails).map((key) => {
    const nearestKnownName = nearestName(key, knownNames)
    const message = `is not a known ${noun}${nearestKnownName === undefined ? '' : `; the nearest one is ${nearestKnownName}`}`
    return { in: part, path: jsonPointer([...parentPath, ...path, key]).toWellFormed(), code, message }
  })
}

/** Returns the member names of the object at a path of the schema; empty for other types. */
function memberNames(schema: z.core.$ZodType, [head, ...rest]: readonly PropertyKey[]): string[] {
  if (schema instanceof z.ZodObject) {
    const shape: Record<string, z.core.$ZodType> = schema.shape
    const member = shape[String(head)]
    if (head === undefined) return Object.keys(shape)
    return member === undefined ? [] : memberNames(member, rest)
  }
  if (schema instanceof z.ZodArray) return memberNames(schema.element, rest)
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return memberNames(
      schema.unwrap(),
      [head, ...rest].filter((segment) => segment !== undefined),
    )
  return []
}

function nearestName(name: string, knownNames: readonly string[]): string | undefined {
  if (name.length > maxNameLength) return undefined
  const distances = knownNames.map((knownName) => [editDistance(name, knownName), knownName] as const)
  return distances.toSorted(([a], [b]) => a - b)[0]?.[1]
}

function editDistance(a: string, b: string): number {
  let previousRow = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [row, letter] of a.split('').entries()) {
    const currentRow = [row + 1]
    for (let column = 1; column <= b.length; column++) {
      const replacementCost = (previousRow[column - 1] ?? 0) + (letter === b[column - 1] ? 0 : 1)
      currentRow.push(Math.min(replacementCost, (previousRow[column] ?? 0) + 1, (currentRow[column - 1] ?? 0) + 1))
    }
    previousRow = currentRow
  }
  return previousRow.at(-1) ?? 0
}

export const parseBody = <Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  parentPath: readonly PropertyKey[] = [],
): z.output<Schema> => parsePart('body', schema, value, parentPath)

/** Returns a JSON pointer (RFC 6901) of at most 500 characters. */
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
