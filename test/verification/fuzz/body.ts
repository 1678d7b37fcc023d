import * as fc from 'fast-check'
import { type OpenApi, resolve, type Schema } from '../../conformance/support/document.ts'
import { oddText, oddValue } from './values.ts'

interface Field {
  path: readonly (string | number)[]
  schema: Schema
  value: unknown
}

type Change = (field: Field) => unknown

export type BodyMutation = (document: OpenApi, schema: Schema, body: unknown) => unknown

const absent = Symbol('absent')

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Resolves references. Of several alternatives, returns the first that is not null. */
function resolveSchema(document: OpenApi, schema: Schema): Schema {
  const resolvedSchema = resolve<Schema>(document, schema)
  const alternative = (resolvedSchema['anyOf'] ?? []).find(({ type }: Schema) => type !== 'null')
  return alternative === undefined ? resolvedSchema : resolve<Schema>(document, alternative)
}

function fieldsOf(document: OpenApi, declared: Schema, value: unknown, path: Field['path'] = []): Field[] {
  const schema = resolveSchema(document, declared)
  const members: [string | number, Schema, unknown][] = Array.isArray(value)
    ? value.slice(0, 2).map((item, index) => [index, schema['items'] ?? {}, item])
    : isObject(value)
      ? Object.entries<Schema>(schema['properties'] ?? {}).map(([name, member]) => [name, member, value[name]])
      : []
  const nested = members.flatMap(([step, member, inner]) => fieldsOf(document, member, inner, [...path, step]))
  return [{ path, schema, value }, ...nested]
}

function replaceAt(value: unknown, [step, ...rest]: Field['path'], replacement: unknown): unknown {
  if (step === undefined) return replacement
  if (Array.isArray(value))
    return value.map((item, index) => (index === step ? replaceAt(item, rest, replacement) : item))
  const members = Object.entries(isObject(value) ? value : {}).filter(([name]) => name !== step)
  const inner =
    rest.length === 0 ? replacement : replaceAt(isObject(value) ? value[step] : undefined, rest, replacement)
  return Object.fromEntries(inner === absent ? members : [...members, [String(step), inner]])
}

/** Part of the values of undocumented members. Must appear in no successful response and no stored item. */
export const marker = 'injected-by-fuzz'

/** Members of responses and records that requests must not set. */
const protectedMembers =
  `id organisationId organizationId status roles role permissions isPlatform isAdmin version createdAt createdAtMs
  updatedAt userId ownerId clusterId relayId batchId hash passwordHash secret token authProvider verified state attempts leaseId
  counters unreadCount activeJobs nodeCount lastLoginAt expiresAt ttl pk sk admin sessionId`.split(/\s+/)

const injection: fc.Arbitrary<Change> = fc
  .tuple(fc.nat(), fc.constantFrom<unknown>(marker, `clus_${marker}`, [marker], { id: marker }))
  .map(([index, injected]) => ({ schema, value }) => {
    const undocumentedMembers = protectedMembers.filter(
      (name) => !Object.keys(schema['properties'] ?? {}).includes(name),
    )
    return {
      ...(isObject(value) ? value : {}),
      [undocumentedMembers[index % undocumentedMembers.length] ?? 'x']: injected,
    }
  })

const boundary: fc.Arbitrary<Change> = fc.nat(5).map((choice) => ({ schema, value }) => {
  const { type, minLength = 0, maxLength = 100, minimum = 0, maximum = 100, minItems = 0, maxItems = 100 } = schema
  const sizes = (low: number, high: number): number => [low, Math.max(0, low - 1), high, high + 1][choice % 4] ?? 0
  const [name] = [type].flat()
  if (name === 'string') return 'x'.repeat(sizes(minLength, maxLength))
  if (name === 'array') {
    const item: unknown = Array.isArray(value) ? value[0] : 'x'
    return Array.from({ length: sizes(minItems, maxItems) }, () => item)
  }
  return [minimum, minimum - 1, maximum, maximum + 1, minimum + 0.5, String(minimum)][choice]
})

const extension: fc.Arbitrary<Change> = fc.tuple(fc.nat(4), oddText).map(([choice, text]) => ({ value }) => {
  if (typeof value !== 'string') return text
  return [`${value}${text}`, `${text}${value}`, value.toUpperCase(), value.slice(1), ` ${value} `][choice]
})

const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 3, arbitrary: fc.oneof(oddValue, oddText).map((value) => () => value) },
  { weight: 2, arbitrary: boundary },
  { weight: 1, arbitrary: extension },
  { weight: 1, arbitrary: fc.constant<Change>(({ path }) => (path.length === 0 ? {} : absent)) },
)

const mutate =
  (index: number, apply: Change, isEligible: (field: Field) => boolean): BodyMutation =>
  (document, schema, body) => {
    const fields = fieldsOf(document, schema, body).filter(isEligible)
    const field = fields[index % fields.length]
    return field === undefined ? marker : replaceAt(body, field.path, apply(field))
  }

export const bodyMutation: fc.Arbitrary<BodyMutation> = fc.oneof(
  { weight: 7, arbitrary: fc.tuple(fc.nat(), change).map(([index, apply]) => mutate(index, apply, () => true)) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.nat(), injection)
      .map(([index, apply]) => mutate(index, apply, ({ schema }) => schema['properties'] !== undefined)),
  },
)
