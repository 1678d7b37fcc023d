import { type OpenApi, type Schema } from '../../conformance/support/document.ts'
import type { Random } from '../random.ts'
import { changedBody } from './schema.ts'
import { oddText, oddValue, textOf } from './values.ts'

/** An operation, as far as requests are made of it. */
export interface Operation {
  name: string
  method: string
  template: string
  parameters: readonly { in: string; name: string; schema: Schema }[]
  /** Of a JSON body. */
  body: Schema | undefined
}

/** A request in its parts, as it will be on the wire. */
export interface Wire {
  /** The path of the target, percent-encoded, well or not. */
  path: string
  /** The query, without `?`; empty where there is none. */
  query: string
  headers: Readonly<Record<string, string>>
  body?: string | Uint8Array
}

/** A good request, from which others are made. */
export interface Good {
  params: Readonly<Record<string, string>>
  query: Readonly<Record<string, string>>
  headers: Readonly<Record<string, string>>
  body: unknown
}

const json = { 'content-type': 'application/json' }

const pathOf = (template: string, valueOf: (name: string) => string): string =>
  template.replaceAll(/\{(\w+)\}/g, (_, name: string) => valueOf(name))

/** What URLs can carry of a text. */
const encoded = (text: string): string => encodeURIComponent(text.toWellFormed())

/** The good request as it is. */
export const wireOf = ({ template }: Operation, { params, query, headers, body }: Good): Wire => ({
  path: pathOf(template, (name) => encoded(params[name] ?? '')),
  query: new URLSearchParams(query).toString(),
  headers: body === undefined ? headers : { ...json, ...headers },
  ...(body !== undefined && { body: textOf(body) }),
})

const badSegments =
  `%ff %c0%af %e0%80%80 %ed%a0%80 %zz % %2 %00 a%00b %2e%2e .. . %2f %252f %5c a%2fb %3f %23 %0d%0aX:y ; a;b=c %25 * ~ @ x:y
  clus_ clus_0 null undefined %F0%9F%8E%89 clus_01jd8w5k3zr9x2m4c7t6v0b1qaz CLUS_01JD8W5K3ZR9X2M4C7T6V0B1QA`.split(
    /\s+/,
  )

const badSegment = (good: string, random: Random): string =>
  random.pick<() => string>([
    () => random.pick(badSegments),
    () => encoded(oddText(random)).slice(0, 6000) || '%20',
    () => `${good}${random.pick(badSegments)}`,
    () => good.slice(0, -1) || 'x',
    () => good.toUpperCase(),
    () => `${random.pick(['job', 'user', 'org', 'batch', 'clus'])}_${good.split('_').at(-1)}`,
  ])()

function changedPath({ template }: Operation, good: Good, wire: Wire, random: Random): Wire {
  const names = Object.keys(good.params)
  if (names.length === 0 || random.isLucky(0.1)) {
    return {
      ...wire,
      path: `${wire.path}${random.pick(['/', '//', '/..', '/x', '%2e', '%00', '%ff', ';x', '%3fx=1', '%'])}`,
    }
  }
  const struck = random.pick(names)
  const segment = (name: string): string => encoded(good.params[name] ?? '')
  const path = pathOf(template, (name) => (name === struck ? badSegment(segment(name), random) : segment(name)))
  return { ...wire, path }
}

function badQueryValue({ minimum = 0, maximum = 100, maxLength = 200 }: Schema, random: Random): string {
  const bounds = [minimum - 1, maximum + 1, minimum, maximum + 0.5].map(String)
  const odd = [
    '',
    '%',
    '%ff',
    '%00',
    '01',
    '+1',
    '1e2',
    '1_0',
    '0x1',
    'NaN',
    'Infinity',
    '99999999999999999999',
    'true',
    '[]',
  ]
  return random.pick<() => string>([
    () => random.pick(odd),
    () => random.pick(bounds),
    () => 'x'.repeat(Math.min(maxLength, 5000) + 1),
    () => encoded(oddText(random)).slice(0, 6000),
    () => encoded(textOf(oddValue(random))).slice(0, 6000),
  ])()
}

/** Names that no endpoint has, and forms of a query that readers understand differently. */
const strangeQueries =
  `x=1 a[b]=c a[]=1&a[]=2 __proto__=1 __proto__[x]=1 constructor=1 = & &&=& ?x=1 %=% x%00=1 x;y=1 page&page id=1
  organisationId=org_1 x=${'a'.repeat(3000)}`.split(/\s+/)

function changedQuery({ parameters }: Operation, wire: Wire, random: Random): Wire {
  const own = parameters.filter((parameter) => parameter.in === 'query')
  if (own.length === 0 || random.isLucky(0.1)) return withQuery(wire, random.pick(strangeQueries))
  const { name, schema } = random.pick(own)
  const pair = `${name}=${badQueryValue(schema, random)}`
  return withQuery(wire, random.pick([pair, pair, pair, `${name}=1&${name}=1`, name, `${name}[]=1`, `%6${name}=1`]))
}

const withQuery = (wire: Wire, query: string): Wire => ({ ...wire, query })

const headerChanges: Readonly<Record<string, readonly string[]>> = {
  'content-type':
    `text/plain application/jsonx json application/problem+json multipart/form-data;boundary=x application/xml
    application/json;charset=utf-16 application/json;charset=utf-8;x=y application/json,application/json text/html
    application/x-www-form-urlencoded`.split(/\s+/),
  'content-length': ['-1', '0', 'x', '99999999999'],
  'content-encoding': ['gzip', 'br', 'identity'],
  'transfer-encoding': ['chunked', 'xchunked'],
  accept: ['', '*/*', 'text/html', 'application/xml;q=0', ','.repeat(500)],
  'accept-encoding': ['gzip;q=x', 'identity;q=0, *;q=0'],
  'idempotency-key': ['', ' ', 'x'.repeat(300), '"', 'a,b', 'ü', 'a\tb', '\u0000'],
  'if-match': ['*', '"x"', 'W/"x"', 'x', '', '"'.repeat(99)],
  'if-none-match': ['*', '"x"', 'W/', ','.repeat(999)],
  'if-modified-since': ['x', '0'],
  range: ['bytes=0-0', 'bytes=-1', 'bytes=9-1,0-'],
  cookie: ['__Host-plat_access=x', '=;=;', 'a=b; '.repeat(400), '__Host-plat_refresh=%00', '__proto__=1'],
  traceparent: ['00-0-0-0', '00-00000000000000000000000000000000-0000000000000000-00', 'x'.repeat(999)],
  'x-trace-id': ['x', '\u001B[2J', '0'.repeat(32)],
  origin: ['null', 'http://evil.example', 'https://platform.example.com.evil.example', '\u0000'],
  referer: ['%', 'http://evil.example/'],
  'x-forwarded-for': ['127.0.0.1', "'", '::1, 10.0.0.1', 'x'.repeat(500)],
  'x-forwarded-host': ['evil.example'],
  'x-http-method-override': ['DELETE', 'TRACE'],
  host: ['', 'evil.example', 'a b', '[::1', 'x'.repeat(300)],
  expect: ['100-continue', 'x'],
  'x-amzn-trace-id': ['Root=x', ''],
}
const headerNames = Object.keys(headerChanges)

function changedHeaders(wire: Wire, random: Random): Wire {
  const name = wire.body !== undefined && random.isLucky(0.3) ? 'content-type' : random.pick(headerNames)
  return { ...wire, headers: { ...wire.headers, [name]: random.pick(headerChanges[name] ?? []) } }
}

/** What becomes of the text of a body. */
const breaks: readonly ((text: string, random: Random) => string | Uint8Array)[] = [
  (text, { below }) => text.slice(0, below(text.length)),
  (text, { below }) => text.slice(1 + below(text.length)),
  (text) => `${text}${text}`,
  (text) => `${text}\0`,
  (text) => `\uFEFF${text}`,
  (text) => `[${text}]`,
  (text) => text.replaceAll('"', "'"),
  (text) => text.replace(/\}$/, ',}'),
  (text) => text.replace(/^\{/, '{/* */'),
  (text) => text.replace(/^\{/, '{"__proto__":{"polluted":true},'),
  (text) => text.replace(/^\{/, String.raw`{"\ud800":1,`),
  (text) => text.replace(/^\{/, '{"":0,'),
  (text) => text.replace(/^\{/, `{"x":${'['.repeat(5000)}${']'.repeat(5000)},`),
  (text) => text.replace(/^\{/, `{"x":${'{"a":'.repeat(3000)}1${'}'.repeat(3000)},`),
  (text) => text.replace(/:"/, String.raw`:"\ud800`),
  (text) => text.replace(/:"/, String.raw`:"\u0000`),
  (text) => text.replace(/:"/, ':"\n'),
  (text) => Buffer.from(text, 'utf16le'),
  (text, { below }) => Buffer.concat([Buffer.from(text.slice(0, below(text.length))), Buffer.from([0xff, 0xc0, 0xaf])]),
  () => '',
  () => ' ',
  () => 'null',
  () => '[]',
  () => '"x"',
  () => '{}',
  () => '1e400',
  () => '['.repeat(20_000),
  (text) => text.replace(/,|$/, ' '.repeat(20_000)),
]

const tooLarge = (): Uint8Array => Buffer.alloc(4 * 1024 * 1024 + 1, ' ')

function brokenBody(wire: Wire, good: Good, random: Random): Wire {
  if (random.isLucky(0.002)) return { ...wire, headers: { ...json, ...wire.headers }, body: tooLarge() }
  const text = textOf(good.body ?? { id: 'x' })
  return { ...wire, headers: { ...json, ...wire.headers }, body: random.pick(breaks)(text, random) }
}

/** A request that has one thing wrong about it, or two. */
export function changedRequest(document: OpenApi, operation: Operation, good: Good, random: Random): Wire {
  const first = oneChange(document, operation, good, wireOf(operation, good), random)
  return random.isLucky(0.15) ? oneChange(document, operation, good, first, random) : first
}

function oneChange(document: OpenApi, operation: Operation, good: Good, wire: Wire, random: Random): Wire {
  const hasQuery = operation.parameters.some((parameter) => parameter.in === 'query')
  const { body } = operation
  const kinds: readonly (() => Wire)[] = [
    ...Array.from(
      { length: Object.keys(good.params).length * 4 },
      () => () => changedPath(operation, good, wire, random),
    ),
    ...Array.from({ length: hasQuery ? 6 : 1 }, () => () => changedQuery(operation, wire, random)),
    () => changedHeaders(wire, random),
    () => changedPath(operation, good, wire, random),
    () => brokenBody(wire, good, random),
    ...(body === undefined
      ? []
      : Array.from({ length: 10 }, () => (): Wire => {
          const other = textOf(changedBody(document, body, good.body, random) ?? null)
          return { ...wire, headers: { ...json, ...wire.headers }, body: other }
        })),
  ]
  return random.pick(kinds)()
}
