import * as z from 'zod'
import { AwsServiceError } from '../http/error.ts'
import type { JsonObject } from '../http/request.ts'
import type { Secret, SecretValue } from './secret.ts'
import type { SecretStore } from './store.ts'

export type Operation = (secrets: SecretStore, input: JsonObject) => JsonObject

/** Returns an operation that validates its input. Validation errors never contain a value. */
export function operation<Schema extends z.ZodType>(
  schema: Schema,
  perform: (secrets: SecretStore, request: z.output<Schema>) => JsonObject,
): Operation {
  return (secrets, input) => {
    const request = schema.safeParse(input)
    if (!request.success) throw new AwsServiceError('ValidationException', z.prettifyError(request.error))
    return perform(secrets, request.data)
  }
}

export const Tags = z.array(z.object({ Key: z.string().min(1), Value: z.string() })).max(50)

const maxValueBytes = 65_536

export const SecretId = z.string().min(1).max(2048)

export const valueMembers = {
  ClientRequestToken: z.string().min(32).max(64).optional(),
  SecretString: z
    .string()
    .min(1)
    .refine((text) => Buffer.byteLength(text) <= maxValueBytes, 'At most 65536 bytes.')
    .optional(),
  SecretBinary: z
    .base64()
    .min(1)
    .refine((text) => Buffer.byteLength(text, 'base64') <= maxValueBytes, 'At most 65536 bytes.')
    .optional(),
} satisfies Record<keyof SecretValue, z.ZodType>

export const pageMembers = {
  MaxResults: z.int().min(1).max(100).default(100),
  NextToken: z.string().optional(),
}

/** `NextToken` is the index of the first item of the next page. */
export function page<Item>(items: readonly Item[], request: { MaxResults: number; NextToken?: string | undefined }) {
  const start = Number(request.NextToken ?? 0)
  if (!Number.isInteger(start) || start < 0)
    throw new AwsServiceError('InvalidNextTokenException', 'The token is not valid.')
  const end = start + request.MaxResults
  return { items: items.slice(start, end), ...(end < items.length && { NextToken: String(end) }) }
}

export const headOf = ({ ARN, Name }: Secret) => ({ ARN, Name })
