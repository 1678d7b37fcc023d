import { type OpenApi, resolve, type Schema } from '../../conformance/support/document.ts'
import type { Random } from '../random.ts'
import { oddText, oddValue } from './values.ts'

/** A place of a body, and what the document says of it. */
interface Place {
  path: readonly (string | number)[]
  schema: Schema
  value: unknown
}

/** In the place of a member that is left out. */
const absent = Symbol('absent')

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Of several forms the first one that is something. */
const formOf = (document: OpenApi, schema: Schema): Schema => {
  const form = resolve<Schema>(document, schema)
  const first = (form['anyOf'] ?? []).find(({ type }: Schema) => type !== 'null')
  return first === undefined ? form : resolve<Schema>(document, first)
}

function placesOf(document: OpenApi, given: Schema, value: unknown, path: Place['path'] = []): Place[] {
  const schema = formOf(document, given)
  const own = { path, schema, value }
  if (Array.isArray(value)) {
    return [
      own,
      ...value.slice(0, 2).flatMap((item, index) => placesOf(document, schema['items'] ?? {}, item, [...path, index])),
    ]
  }
  if (!isObject(value)) return [own]
  const members = Object.entries<Schema>(schema['properties'] ?? {})
  return [own, ...members.flatMap(([name, member]) => placesOf(document, member, value[name], [...path, name]))]
}

/** A copy of a value with something else at a place. */
function changed(value: unknown, [step, ...rest]: Place['path'], other: unknown): unknown {
  if (step === undefined) return other
  if (Array.isArray(value)) return value.map((item, index) => (index === step ? changed(item, rest, other) : item))
  const members = Object.entries(isObject(value) ? value : {}).filter(([name]) => name !== step)
  const inside = rest.length === 0 ? other : changed(isObject(value) ? value[step] : undefined, rest, other)
  return Object.fromEntries(inside === absent ? members : [...members, [String(step), inside]])
}

/** What is planted where nobody asks for it: it must be in no answer, and nowhere in the store. */
export const planted = 'planted-by-nobody'

/** Members of answers, which requests may not decide. */
const responseOnly =
  `id organisationId organizationId status roles role permissions isPlatform isAdmin version createdAt createdAtMs
  updatedAt userId ownerId clusterId relayId batchId hash passwordHash secret token authProvider verified state attempts leaseId
  counters unreadCount activeJobs nodeCount lastLoginAt expiresAt ttl pk sk admin sessionId`.split(/\s+/)

function withPlanted({ schema, value }: Place, { pick }: Random): unknown {
  const known = Object.keys(schema['properties'] ?? {})
  const free = responseOnly.filter((name) => !known.includes(name))
  const given = Object.entries(isObject(value) ? value : {})
  const text = pick([planted, `clus_${planted}`])
  return Object.fromEntries([...given, [pick(free), pick([text, [text], { id: text }])]])
}

function nearTheBounds({ schema, value }: Place, random: Random): unknown {
  const { minLength = 0, maxLength = 100, minimum = 0, maximum = 100, minItems = 0, maxItems = 100 } = schema
  const { pick } = random
  const [type] = [schema['type']].flat()
  if (type === 'string') return 'x'.repeat(pick([minLength, Math.max(0, minLength - 1), maxLength, maxLength + 1]))
  if (type === 'array') {
    const item: unknown = Array.isArray(value) ? value[0] : 'x'
    return Array.from({ length: pick([minItems, Math.max(0, minItems - 1), maxItems, maxItems + 1]) }, () => item)
  }
  return pick([minimum, minimum - 1, maximum, maximum + 1, minimum + 0.5, String(minimum)])
}

const withOddPart = ({ value }: Place, random: Random): unknown =>
  typeof value === 'string' ? pickSide(value, oddText(random), random) : oddValue(random)

const pickSide = (value: string, odd: string, { pick }: Random): string =>
  pick([`${value}${odd}`, `${odd}${value}`, value.toUpperCase(), value.slice(1), ` ${value} `])

/** A good body with one thing about it that is not as the document says, or hardly. */
export function changedBody(document: OpenApi, schema: Schema, body: unknown, random: Random): unknown {
  const places = placesOf(document, schema, body)
  const place = random.pick(places)
  const objects = places.filter(({ schema: { properties } }) => properties !== undefined)
  const kinds: readonly (() => unknown)[] = [
    () => changed(body, place.path, oddValue(random)),
    () => changed(body, place.path, oddValue(random)),
    () => changed(body, place.path, oddText(random)),
    () => changed(body, place.path, nearTheBounds(place, random)),
    () => changed(body, place.path, nearTheBounds(place, random)),
    () => changed(body, place.path, withOddPart(place, random)),
    () => (place.path.length === 0 ? {} : changed(body, place.path, absent)),
    () => planting(random.pick(objects)),
  ]
  const planting = (object: Place): unknown => changed(body, object.path, withPlanted(object, random))
  return random.pick(objects.length === 0 ? kinds.slice(0, -1) : kinds)()
}
