import * as z from 'zod'

/** Prefix of an identifier → the resource type that it names. */
const nouns = {
  user: 'user',
  org: 'organisation',
  clus: 'cluster',
  node: 'node',
  relay: 'relay',
  site: 'site',
  job: 'job',
  batch: 'batch',
  sess: 'session',
  tok: 'API token',
  enroll: 'enrollment token',
  ekey: 'enrollment key',
  rupd: 'relay update',
  lease: 'lease',
  notif: 'notification',
  filter: 'saved filter',
  evt: 'event',
  aud: 'audit entry',
  hook: 'webhook',
  dlv: 'delivery',
  idp: 'identity provider',
} as const

/** Prefix of an identifier, which names its resource type. */
export type IdPrefix = keyof typeof nouns

const exampleId = (prefix: IdPrefix): string => `${prefix}_01jd8w5k3zr9x2m4c7t6v0b1qa`

/** Schema of an identifier: `<prefix>_<26 characters of lower-case Crockford base32>`. */
export const id = (prefix: IdPrefix) =>
  z
    .string()
    .max(40)
    .regex(new RegExp(`^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`))
    .meta({ description: `Identifier of the ${nouns[prefix]}`, example: exampleId(prefix) })

/**
 * Parameter that identifies a resource. Accepts any text of 1 to 200 characters, so that an unknown or malformed
 * identifier in a path returns 404, not 400.
 */
export const pathId = (prefix: IdPrefix | 'module') =>
  z
    .string()
    .min(1)
    .max(200)
    .meta(
      prefix === 'module'
        ? { description: 'Identifier of the module', example: 'hello' }
        : { description: `Identifier of the ${nouns[prefix]}`, example: exampleId(prefix) },
    )

/** An ISO 8601 timestamp in UTC. */
export const timestamp = z.string().max(30).meta({ format: 'date-time', example: '2026-11-21T09:30:00.000Z' })

/** One line of text of `min` to `max` characters: trimmed, without control characters and lone surrogates. */
export const line = (min: number, max: number) =>
  z
    .string()
    .trim()
    .min(min)
    .max(max)
    .refine((text) => text.isWellFormed(), 'must be well-formed text')
    // Control characters and line separators could forge log lines or terminal output. The pattern uses ranges, because
    // not every OpenAPI tool supports \p{Cc}.
    // oxlint-disable-next-line no-control-regex
    .regex(/^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$/, 'must not contain control characters')

/** Query parameter with a positive integer of at most `max`; `fallback` applies if it is absent. */
export const digits = (max: number, fallback: number, description: string) =>
  z
    .string()
    .regex(/^[1-9][0-9]{0,8}$/, `must be a whole number from 1 to ${max}`)
    .transform(Number)
    .refine((value) => value <= max, `must be at most ${max}`)
    .optional()
    .transform((value) => value ?? fallback)
    .meta({
      description,
      type: 'integer',
      format: 'int32',
      minimum: 1,
      maximum: max,
      default: fallback,
    })

/** Query parameters of a paged list. */
export const paging = {
  page: digits(100_000_000, 1, 'Page number, from 1'),
  pageSize: digits(100, 20, 'Items per page'),
  cursor: z.string().max(600).optional().meta({
    description:
      '`nextCursor` of the previous response, instead of `page`. Every item that exists while you read all pages appears exactly once, even if the list changes',
  }),
}

/** A page of a list of at most 100 items. */
export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.object({
    items: z.array(item).max(100),
    totalCount: z.int32().min(0).meta({ example: 1 }),
    page: z.int32().min(1),
    pageSize: z.int32().min(1).max(100).meta({ example: 20 }),
    nextCursor: z
      .string()
      .max(600)
      .optional()
      .meta({ description: '`cursor` of the next page; absent on the last one' }),
  })

/** A list without paging, of at most `max` items. */
export const listOf = <Item extends z.ZodType>(item: Item, max: number) => z.object({ items: z.array(item).max(max) })

/** One invalid field. `path` is a JSON Pointer into the part of the request that `in` names, or into `module.json`. */
export const ErrorDetail = z
  .object({
    in: z.enum(['body', 'query', 'path', 'header', 'manifest']),
    path: z.string().max(500),
    code: z.string().max(50),
    message: z.string().max(500),
    position: z
      .int32()
      .min(1)
      .optional()
      .meta({ description: 'Position of the error in an invalid selector, in characters, counted from 1' }),
  })
  .meta({ id: 'ErrorDetail' })

/** The response body of an error. */
export const ErrorBody = z
  .object({
    error: z.string().max(60).meta({ description: 'Machine-readable code', example: 'validation_failed' }),
    message: z.string().max(1000).meta({ description: 'Description of the error and of the next step' }),
    traceId: z.string().max(32).meta({ description: 'Identifies the request in the logs of the platform' }),
    details: z.array(ErrorDetail).max(50).optional(),
    requiredPermission: z.string().max(30).optional(),
    howToRetrieve: z.string().max(500).optional(),
    setupComplete: z.boolean().optional(),
    limit: z.int().optional().meta({ description: 'With `limit_reached`: how many can exist' }),
    resolvedCount: z
      .int()
      .optional()
      .meta({ description: 'With `target_changed` and `batch_limit_exceeded`: how many clusters the target has' }),
    used: z.int().optional().meta({ description: 'With `limit_reached`: how many exist' }),
  })
  .meta({ id: 'Error' })

export type ErrorDetail = z.infer<typeof ErrorDetail>
export type ErrorBody = z.infer<typeof ErrorBody>

/** Returns the size of a value as UTF-8 JSON, in bytes. */
export const jsonBytes = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length
