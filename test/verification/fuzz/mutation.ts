import * as fc from 'fast-check'
import type { OpenApi, Schema } from '../../conformance/support/document.ts'
import { bodyMutation } from './body.ts'
import {
  expandPath,
  jsonHeaders,
  type Operation,
  percentEncode,
  serialise,
  type ValidRequest,
  type Wire,
} from './request.ts'
import { oddText, oddValue } from './values.ts'

export type Mutation = (wire: Wire, valid: ValidRequest) => Wire

const words = (text: string): fc.Arbitrary<string> => fc.constantFrom(...text.split(/\s+/))
const urlText: fc.Arbitrary<string> = fc
  .oneof(oddText, oddValue.map(serialise))
  .map((text) => percentEncode(text).slice(0, 6000) || '%20')

const invalidSegment =
  words(`%ff %c0%af %e0%80%80 %ed%a0%80 %zz % %2 %00 a%00b %2e%2e .. . %2f %252f %5c a%2fb %3f %23 %0d%0aX:y ; a;b=c %25 * ~ @
    x:y clus_ clus_0 null undefined %F0%9F%8E%89 clus_01jd8w5k3zr9x2m4c7t6v0b1qaz CLUS_01JD8W5K3ZR9X2M4C7T6V0B1QA`)

const segment: fc.Arbitrary<(valid: string) => string> = fc.oneof(
  fc.oneof(invalidSegment, urlText).map((text) => () => text),
  invalidSegment.map((text) => (valid: string) => `${valid}${text}`),
  fc.constantFrom(
    (valid: string) => valid.slice(0, -1) || 'x',
    (valid: string) => valid.toUpperCase(),
  ),
  words('job user org batch clus').map((prefix) => (valid: string) => `${prefix}_${valid.split('_').at(-1)}`),
)

const pathSuffix: fc.Arbitrary<Mutation> = words('/ // /.. /x %2e %00 %ff ;x %3fx=1 %').map((suffix) => (wire) => ({
  ...wire,
  path: `${wire.path}${suffix}`,
}))

const pathParameter = ({ template }: Operation, names: readonly string[]): fc.Arbitrary<Mutation> =>
  fc.tuple(fc.constantFrom(...names), segment).map(([changed, replace]) => (wire, { params }) => {
    const valueOf = (name: string): string => percentEncode(params[name] ?? '')
    return {
      ...wire,
      path: expandPath(template, (name) => (name === changed ? replace(valueOf(name)) : valueOf(name))),
    }
  })

const withQuery =
  (query: string): Mutation =>
  (wire) => ({ ...wire, query })

const undocumentedQuery =
  words(`x=1 a[b]=c a[]=1&a[]=2 __proto__=1 __proto__[x]=1 constructor=1 = & &&=& ?x=1 %=% x%00=1 x;y=1
  page&page id=1 organisationId=org_1 x=${'a'.repeat(3000)}`).map(withQuery)

function queryParameter({ name, schema }: { name: string; schema: Schema }): fc.Arbitrary<Mutation> {
  const { minimum = 0, maximum = 100, maxLength = 200 } = schema
  const values = fc.oneof(
    fc.constantFrom(
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
      '9'.repeat(20),
      'true',
      '[]',
    ),
    fc.constantFrom(minimum - 1, maximum + 1, minimum, maximum + 0.5).map(String),
    fc.constant('x'.repeat(Math.min(maxLength, 5000) + 1)),
    urlText,
  )
  const forms = fc.constantFrom(`${name}=1&${name}=1`, name, `${name}[]=1`, `%6${name}=1`)
  return fc
    .oneof({ weight: 3, arbitrary: values.map((value) => `${name}=${value}`) }, { weight: 4, arbitrary: forms })
    .map(withQuery)
}

const headerValues: Readonly<Record<string, readonly string[]>> = {
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

const header = (names = Object.keys(headerValues)): fc.Arbitrary<Mutation> =>
  fc
    .constantFrom(...names.flatMap((name) => (headerValues[name] ?? []).map((value) => [name, value] as const)))
    .map(([name, value]) => (wire) => ({ ...wire, headers: { ...wire.headers, [name]: value } }))

type Damage = (text: string, at: number) => string | Uint8Array

const damages: readonly Damage[] = [
  (text, at) => text.slice(0, at),
  (text, at) => text.slice(1 + at),
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
  (text) => text.replace(/,|$/, ' '.repeat(20_000)),
  (text) => Buffer.from(text, 'utf16le'),
  (text, at) => Buffer.concat([Buffer.from(text.slice(0, at)), Buffer.from([0xff, 0xc0, 0xaf])]),
  ...['', ' ', 'null', '[]', '"x"', '{}', '1e400', '['.repeat(20_000)].map((text) => () => text),
]

const withBody = (wire: Wire, body: string | Uint8Array): Wire => ({
  ...wire,
  headers: { ...jsonHeaders, ...wire.headers },
  body,
})

const damagedBody: fc.Arbitrary<Mutation> = fc
  .tuple(fc.constantFrom(...damages), fc.nat())
  .map(([damage, position]) => (wire, { body }) => {
    const text = serialise(body ?? { id: 'x' })
    return withBody(wire, damage(text, position % (text.length || 1)))
  })

const oversizedBody = fc.constant<Mutation>((wire) => withBody(wire, Buffer.alloc(4 * 1024 * 1024 + 1, ' ')))

export function mutationOf(document: OpenApi, operation: Operation): fc.Arbitrary<Mutation> {
  const pathNames = operation.parameters.filter(({ in: location }) => location === 'path').map(({ name }) => name)
  const queryParameters = operation.parameters.filter(({ in: location }) => location === 'query')
  const { body } = operation
  return fc.oneof(
    { weight: 100, arbitrary: pathSuffix },
    { weight: 100, arbitrary: undocumentedQuery },
    { weight: 70, arbitrary: header() },
    { weight: 30, arbitrary: header(['content-type']) },
    { weight: 100, arbitrary: damagedBody },
    { weight: 1, arbitrary: oversizedBody },
    ...(pathNames.length === 0
      ? []
      : [{ weight: 400 * pathNames.length, arbitrary: pathParameter(operation, pathNames) }]),
    ...(queryParameters.length === 0
      ? []
      : [{ weight: 500, arbitrary: fc.oneof(...queryParameters.map(queryParameter)) }]),
    ...(body === undefined
      ? []
      : [
          {
            weight: 1000,
            arbitrary: bodyMutation.map((mutate): Mutation => (wire, valid) => {
              return withBody(wire, serialise(mutate(document, body, valid.body) ?? null))
            }),
          },
        ]),
  )
}
