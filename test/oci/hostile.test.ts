import { digestOf } from '@platform/oci/digest'
import { mediaTypes } from '@platform/oci/types'
import { test } from 'vitest'
import type { ServerReply, Respond } from '../support/http-server.ts'
import { always, config, expectFailure, image, imageBytes, index, json, type Row, subject, to } from './hostility.ts'

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)

/** A manifest that the client must reject. */
const broken = (name: string, body: unknown, mediaType: string = mediaTypes.manifest): Row => [
  `has ${name} as a manifest`,
  'manifest',
  'invalid',
  always(json(body, { 'content-type': mediaType })),
]

const documents: Row[] = [
  broken('nothing', ''),
  broken('HTML', '<html>'),
  broken('binary data', Buffer.from([0xff, 0xfe, 0x00])),
  broken('null', null),
  broken('a list', [image]),
  broken('a million nested lists', nested(1_000_000)),
  broken('a deep unknown member', JSON.stringify(image).replace('{', `{"x":${nested(500_000)},`)),
  broken('an index with image members', { ...image, ...index }, mediaTypes.index),
  broken('an image with index members', { ...image, ...index, mediaType: mediaTypes.manifest }),
  broken('an image with the media type of an index', { ...image, mediaType: mediaTypes.index }),
  broken('an index with the media type of an image', index),
  broken('an image of schema version 1', { ...image, schemaVersion: 1 }),
  broken('an image without layers', { ...image, layers: undefined }),
  broken('an image with a null layer', { ...image, layers: [null] }),
  broken('a negative size', { ...image, config: { ...config, size: -1 } }),
  broken('a fractional size', { ...image, config: { ...config, size: 1.5 } }),
  broken('an infinite size', JSON.stringify(image).replace('"size":2', '"size":1e400')),
  broken('a digest with a path', { ...image, config: { ...config, digest: 'sha256:../../../etc/passwd' } }),
  broken('an MD5 digest', { ...image, config: { ...config, digest: `md5:${'0'.repeat(32)}` } }),
  broken('a nested annotation', { ...image, annotations: { a: { b: 'c' } } }),
  broken('an index without a list', { ...index, manifests: {} }, mediaTypes.index),
  ['has 5 MiB as a manifest', 'manifest', 'too_large', always(json(Buffer.alloc(5 << 20, ' ')))],
  ['lists tags as a text', 'tags', 'invalid', always(json({ tags: 'latest' }))],
  ['lists tags with a path', 'tags', 'invalid', always(json({ tags: ['../../other/manifests/x'] }))],
  ['lists repositories with a path', 'repositories', 'invalid', always(json({ repositories: ['a/../b'] }))],
  ['lists 5 MiB of tags', 'tags', 'too_large', always(json({ tags: Array(1_000_000).fill('tag') }))],
  ['lists an image as referrers', 'referrers', 'invalid', always(json(image))],
]

const started = { status: 202, headers: { location: '/v2/a/blobs/uploads/1' } }

/** Responses to the steps of an upload. */
const uploading =
  (start: ServerReply, end: ServerReply): Respond =>
  ({ method }) =>
    ({ HEAD: { status: 404 }, POST: start })[method] ?? end

const page = (next: string): ServerReply => json({ tags: ['a'] }, { link: `<${next}>; rel="next"` })

/** Sends data without end, as fast as the client reads. */
const pour: Respond = (_request, outgoing) => {
  const more = () => {
    while (outgoing.write(Buffer.alloc(65_536)));
  }
  outgoing.on('drain', more)
  more()
  return undefined
}

const otherDigest = { 'docker-content-digest': digestOf('x') }

const wrongContent: Row[] = [
  ['has another image under a digest', 'manifestDigest', 'invalid', always(json({ ...image, annotations: {} }))],
  ['has an image as HTML', 'manifest', 'invalid', always(json(image, { 'content-type': 'text/html' }))],
  ['has an image without a type', 'manifest', 'invalid', always({ status: 200, body: imageBytes })],
  ['reports another digest', 'manifest', 'invalid', always(json(image, otherDigest))],
  ['resolves a digest to another', 'resolveDigest', 'invalid', always(json(image, otherDigest))],
  ['resolves to no digest', 'resolve', 'invalid', always(json(image, { 'docker-content-digest': 'latest' }))],
  [
    'resolves to HTML',
    'resolve',
    'invalid',
    always(json(image, { 'content-type': 'text/html', 'docker-content-digest': subject.digest })),
  ],
  [
    'resolves to 5 MiB',
    'resolve',
    'too_large',
    always(json(Buffer.alloc(5 << 20), { 'docker-content-digest': subject.digest })),
  ],
  ['has other content as a blob', 'blob', 'invalid', always({ status: 200, body: 'Content' })],
  ['has a shorter blob', 'blob', 'invalid', always({ status: 200, body: 'conten' })],
  ['has a longer blob', 'blob', 'invalid', always({ status: 200, body: 'content!' })],
  ['has an endless blob', 'blob', 'invalid', () => pour],
  ['sends a partial blob', 'blob', 'invalid', always({ status: 206, body: 'content' })],
  ['stores another blob', 'putBlob', 'invalid', () => uploading(started, { status: 201, headers: otherDigest })],
  ['stores another manifest', 'putManifest', 'invalid', always({ status: 201, headers: otherDigest })],
  ['returns 200 for an upload', 'putManifest', 'invalid', always({ status: 200 })],
  ['has an image under the referrers tag', 'putReferrer', 'invalid', () => afterPut(json(image))],
  ['loses the referrers index', 'putReferrer', 'refused', () => afterPut({ status: 404 })],
]

/** Accepts each upload, and responds to all other requests with a reply. */
const afterPut =
  (reply: ServerReply): Respond =>
  ({ method }) =>
    method === 'PUT' ? { status: 201 } : reply

const redirects: Row[] = [
  ['continues a list at another host', 'tags', 'refused', (url) => () => page(`${url}/v2/a/tags/list?last=a`)],
  ['continues a list at a relative host', 'tags', 'refused', (url) => () => page(url.replace('http:', ''))],
  ['redirects a list', 'tags', 'refused', (url) => () => to(url)],
  ['redirects a manifest', 'manifest', 'refused', (url) => () => to(url)],
  ['redirects a manifest to itself', 'manifest', 'refused', always(to('/v2/a/manifests/other'))],
  ['redirects a HEAD request', 'resolve', 'refused', (url) => () => to(url, 302)],
  ['redirects a manifest upload', 'putManifest', 'refused', (url) => () => to(url, 308)],
  ['redirects a removal', 'remove', 'refused', (url) => () => to(url)],
  ['redirects the start of an upload', 'putBlob', 'refused', (url) => uploading(to(url), { status: 201 })],
  ['redirects an upload', 'putBlob', 'refused', (url) => uploading(started, to(url))],
  [
    'starts an upload at another host',
    'putBlob',
    'refused',
    (url) => uploading({ status: 202, headers: { location: `${url}/x` } }, { status: 201 }),
  ],
  ['starts an upload without a location', 'putBlob', 'refused', () => uploading({ status: 202 }, { status: 201 })],
  ['mounts without a request', 'putBlob', 'invalid', () => uploading({ status: 201 }, { status: 201 })],
  ['redirects a blob in a circle', 'blob', 'refused', always(to('/v2/a/blobs/again'))],
  ['redirects a blob to an invalid URL', 'blob', 'refused', always(to('http://['))],
  ['redirects a blob to a file', 'blob', 'refused', always(to('file:///etc/passwd'))],
  ['redirects a blob to http', 'blob', 'refused', always(to('http://storage.example/blob'))],
  ['redirects a blob without a location', 'blob', 'refused', always({ status: 307 })],
]

let pages = 0
const failures: Row[] = [
  [
    'lists in a circle',
    'tags',
    'too_large',
    () =>
      ({ url }) =>
        page(url.searchParams.get('last') === 'b' ? '?last=a' : '?last=b'),
  ],
  ['lists without end', 'tags', 'too_large', () => () => page(`?last=${(pages += 1)}`)],
  [
    'lists too many repositories',
    'repositories',
    'too_large',
    () => () => json({ repositories: Array(600_000).fill('a/b') }, { link: `<?last=${(pages += 1)}>; rel="next"` }),
  ],
  ['requires a delay', 'tags', 'unreachable', always({ status: 429, headers: { 'retry-after': '7' } })],
  ['fails', 'manifest', 'unreachable', always({ status: 500, body: 'Internal error' })],
  ['denies access', 'manifest', 'unauthorized', always({ status: 403, body: '{"errors":[{"code":"DENIED"}]}' })],
  ['is no registry', 'tags', 'not_found', always({ status: 404, body: '<html>' })],
  ['returns an unknown status', 'blob', 'refused', always({ status: 418 })],
  [
    'does not support removal',
    'remove',
    'refused',
    always({ status: 405, body: '{"errors":[{"code":"UNSUPPORTED"}]}' }),
  ],
  ['never responds', 'resolve', 'unreachable', () => () => undefined],
  [
    'stalls during a manifest',
    'manifest',
    'unreachable',
    () => (_request, outgoing) => void outgoing.writeHead(200).write('{'),
  ],
  [
    'disconnects during a blob',
    'blob',
    'unreachable',
    () => (_request, outgoing) =>
      void outgoing.writeHead(200, { 'content-length': 7 }).write('con', () => outgoing.destroy()),
  ],
  ['disconnects', 'hasBlob', 'unreachable', () => (_request, outgoing) => void outgoing.destroy()],
  [
    'does not speak HTTP',
    'tags',
    'unreachable',
    () => (_request, outgoing) => void outgoing.socket?.end('220 smtp.example ESMTP\r\n'),
  ],
  [
    'switches protocols',
    'tags',
    'unreachable',
    () => (_request, outgoing) =>
      void outgoing.socket?.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  ],
]

test.for([...documents, ...wrongContent, ...redirects, ...failures])(
  'reports a registry that %s, on %s, as %s, without secrets',
  expectFailure,
)
