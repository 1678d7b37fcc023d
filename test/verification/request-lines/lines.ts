/** Request lines that components interpret differently. */

export type Destination = 'module' | 'clusters' | 'none'

export interface RequestLine {
  method: string
  target: string
  /** The only component that may serve the request. */
  allowed: Destination
}

const words = (text: string): string[] => text.trim().split(/\s+/)

/** Suffixes of a module's path that leave it when resolved or decoded again. */
const traversals = words(String.raw`
  /../v1/clusters /../../api/v1/clusters /..%2fv1%2fclusters /%2e%2e/v1/clusters /%2e%2e%2fv1%2fclusters /.%2e/v1/clusters
  /%2e./v1/clusters /..%5cv1%5cclusters /..\v1\clusters /%252e%252e/v1/clusters /%25%32%65%25%32%65/v1/clusters
  /..%252fv1%252fclusters /..%c0%afv1%c0%afclusters /..%ef%bc%8fv1/clusters /..;/v1/clusters /;/../v1/clusters
  /x/../../v1/clusters /./../v1/clusters //../v1/clusters /..//v1/clusters /%2f..%2fv1%2fclusters /..%00/v1/clusters
  /..%0d%0a/v1/clusters /..%09/v1/clusters /..%3f/../v1/clusters /..%23/../v1/clusters /%2e%2e%3b/v1/clusters
  /../.. /..%2f..%2f..%2fetc%2fpasswd /%ff/../v1/clusters /x%00y /x%0ay /x\y /x//y //x /x%5cy /x%3fy /x%23y
  %2f..%2fv1%2fclusters %2e%2e/v1/clusters %20HTTP/1.1
`)

/** Spellings of a protected path that no route may match. */
const disguises = words(String.raw`
  //api/v1/clusters /api//v1/clusters /api/v1//clusters /api/v1/clusters/ /api/v1/clusters// /API/v1/clusters /api/V1/clusters
  /api/v1/CLUSTERS /api/./v1/clusters /api/v1/./clusters /api/v1/x/../clusters /api/v1/clusters/. /api/v1/clusters/..
  /%2fapi/v1/clusters /api/v1/clusters;x=1 /api/v1;x/clusters /api/v1/clusters%20 /api/v1/clusters%00
  /api/v1/clusters%0a /api/v1/clusters%2f /api/v1/clusters%3fx /api/v1/clusters%23x /api/v1/clusters. /api/v1/clusters.json
  /api/v1/clusters/%2e /api/v1/clusters/%2e%2e /api\v1\clusters /modules/%2e%2e/api/v1/clusters /modules/../api/v1/clusters
  /api/v1%5cclusters /%5capi/v1/clusters /api/v1/%ef%bd%83lusters /api/v1/cluster%c5%bf /%61pi/v1/clusters%2e
`)

const equivalents = words(
  '/%61pi/v1/clusters /api/%76%31/clusters /api/v1/%63lusters /api%2fv1%2fclusters http://other.example/api/v1/clusters',
)

const unsupportedMethods = words('TRACE CONNECT PROPFIND BREW get G')
const malformedTargets = words('* / . .. ? # api/v1/clusters :80/api/v1/clusters http:// \\ \u00e9')

const get =
  (allowed: Destination) =>
  (target: string): RequestLine => ({ method: 'GET', target, allowed })

export const requestLines = (moduleId: string): readonly RequestLine[] => [
  ...[`/api/${moduleId}`, `/modules/${moduleId}`].flatMap((path) => [
    ...['', ...traversals].map((suffix) => get('module')(`${path}${suffix}`)),
    { method: 'POST', target: `${path}/x?y=/../z`, allowed: 'module' as const },
  ]),
  ...[`/api/${moduleId}x`, `/api/${moduleId.toUpperCase()}`, `/api/x/../${moduleId}`, `/api/%2e/${moduleId}`].map(
    get('none'),
  ),
  ...[...disguises, ...malformedTargets].map(get('none')),
  ...equivalents.map(get('clusters')),
  ...words('HEAD OPTIONS').map((method) => ({ method, target: '/api/v1/clusters', allowed: 'clusters' as const })),
  ...unsupportedMethods.map((method) => ({ method, target: '/api/v1/clusters', allowed: 'none' as const })),
]

export const ambiguousFraming: readonly string[] = [
  'Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd',
  'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n',
  'Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
  'Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n',
  'Transfer-Encoding:\u000bchunked\r\n\r\n0\r\n\r\n',
  'Content-Length: +3\r\n\r\nabc',
  'Content-Length: 0x3\r\n\r\nabc',
  'Content-Length: -1\r\n\r\n',
  'Content-Length: 3, 3\r\n\r\nabc',
  'X-A: a\r\n b: c\r\n\r\n',
  'X A: b\r\n\r\n',
  'X-A: b\nX-B: c\r\n\r\n',
  'X-A: b\rX-B: c\r\n\r\n',
  ': x\r\n\r\n',
  'Host: other.example\r\n\r\n',
  'X-A: \0\r\n\r\n',
  `X-A: ${'a'.repeat(40_000)}\r\n\r\n`,
  'Connection: authorization, x-platform-user\r\n\r\n',
  'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n',
]
