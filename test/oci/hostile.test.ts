import { digestOf } from '@platform/oci/digest'
import { test } from 'vitest'
import type { ServerReply, Respond } from '../support/http-server.ts'
import { always, expectFailure, image, imageBytes, json, type Row, subject, to } from './hostility.ts'

const started = { status: 202, headers: { location: '/v2/a/blobs/uploads/1' } }

/** Answers to uploads as they should be, but for the last. */
const uploading =
  (start: ServerReply, end: ServerReply): Respond =>
  ({ method }) =>
    ({ HEAD: { status: 404 }, POST: start })[method] ?? end

const page = (next: string): ServerReply => json({ tags: ['a'] }, { link: `<${next}>; rel="next"` })

/** Sends and sends, as fast as it is read. */
const pour: Respond = (_seen, outgoing) => {
  const more = () => {
    while (outgoing.write(Buffer.alloc(65_536)));
  }
  outgoing.on('drain', more)
  more()
  return undefined
}

const lies: Row[] = [
  ['has another image under a digest', 'manifestDigest', 'invalid', always(json({ ...image, annotations: {} }))],
  ['has an image as a web page', 'manifest', 'invalid', always(json(image, { 'content-type': 'text/html' }))],
  ['has an image as nothing', 'manifest', 'invalid', always({ status: 200, body: imageBytes })],
  [
    'tells a digest that the content does not have',
    'manifest',
    'invalid',
    always(json(image, { 'docker-content-digest': digestOf('x') })),
  ],
  [
    'resolves a digest to another',
    'resolveDigest',
    'invalid',
    always(json(image, { 'docker-content-digest': digestOf('x') })),
  ],
  ['resolves to no digest', 'resolve', 'invalid', always(json(image, { 'docker-content-digest': 'latest' }))],
  [
    'resolves to a web page',
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
  ['has less than a blob', 'blob', 'invalid', always({ status: 200, body: 'conten' })],
  ['has more than a blob', 'blob', 'invalid', always({ status: 200, body: 'content!' })],
  ['has a blob without end', 'blob', 'invalid', () => pour],
  ['sends a part of a blob only', 'blob', 'invalid', always({ status: 206, body: 'content' })],
  [
    'took another blob',
    'putBlob',
    'invalid',
    () => uploading(started, { status: 201, headers: { 'docker-content-digest': digestOf('x') } }),
  ],
  [
    'took another manifest',
    'putManifest',
    'invalid',
    always({ status: 201, headers: { 'docker-content-digest': digestOf('x') } }),
  ],
  ['only says that it takes a manifest', 'putManifest', 'invalid', always({ status: 200 })],
  [
    'has an image under the tag for what refers to it',
    'putReferrer',
    'invalid',
    () =>
      ({ method }) =>
        method === 'PUT' ? { status: 201 } : json(image),
  ],
  [
    'forgets what refers to an image',
    'putReferrer',
    'refused',
    () =>
      ({ method }) =>
        method === 'PUT' ? { status: 201 } : { status: 404 },
  ],
]

const elsewhere: Row[] = [
  ['goes on listing at another host', 'tags', 'refused', (url) => () => page(`${url}/v2/a/tags/list?last=a`)],
  ['goes on listing where no host is named', 'tags', 'refused', (url) => () => page(url.replace('http:', ''))],
  ['redirects a list', 'tags', 'refused', (url) => () => to(url)],
  ['redirects a manifest', 'manifest', 'refused', (url) => () => to(url)],
  ['redirects a manifest to itself', 'manifest', 'refused', always(to('/v2/a/manifests/other'))],
  ['redirects the question for a manifest', 'resolve', 'refused', (url) => () => to(url, 302)],
  ['redirects a manifest that is sent', 'putManifest', 'refused', (url) => () => to(url, 308)],
  ['redirects a removal', 'remove', 'refused', (url) => () => to(url)],
  ['redirects the start of an upload', 'putBlob', 'refused', (url) => uploading(to(url), { status: 201 })],
  ['redirects an upload', 'putBlob', 'refused', (url) => uploading(started, to(url))],
  [
    'wants an upload at another host',
    'putBlob',
    'refused',
    (url) => uploading({ status: 202, headers: { location: `${url}/x` } }, { status: 201 }),
  ],
  ['wants an upload nowhere', 'putBlob', 'refused', () => uploading({ status: 202 }, { status: 201 })],
  ['mounts what nobody asked to mount', 'putBlob', 'invalid', () => uploading({ status: 201 }, { status: 201 })],
  ['redirects a blob without end', 'blob', 'refused', always(to('/v2/a/blobs/again'))],
  ['redirects a blob to no address', 'blob', 'refused', always(to('http://['))],
  ['redirects a blob to a file', 'blob', 'refused', always(to('file:///etc/passwd'))],
  ['redirects a blob to plain http', 'blob', 'refused', always(to('http://storage.example/blob'))],
  ['redirects a blob without an address', 'blob', 'refused', always({ status: 307 })],
]

let pages = 0
const moods: Row[] = [
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
    'lists more than anybody has',
    'repositories',
    'too_large',
    () => () => json({ repositories: Array(600_000).fill('a/b') }, { link: `<?last=${(pages += 1)}>; rel="next"` }),
  ],
  ['wants to be asked later', 'tags', 'unreachable', always({ status: 429, headers: { 'retry-after': '7' } })],
  ['fails', 'manifest', 'unreachable', always({ status: 500, body: 'Internal error' })],
  ['denies', 'manifest', 'unauthorized', always({ status: 403, body: '{"errors":[{"code":"DENIED"}]}' })],
  ['is no registry', 'tags', 'not_found', always({ status: 404, body: '<html>' })],
  ['is a teapot', 'blob', 'refused', always({ status: 418 })],
  ['allows no removal', 'remove', 'refused', always({ status: 405, body: '{"errors":[{"code":"UNSUPPORTED"}]}' })],
  ['hangs', 'resolve', 'unreachable', () => () => undefined],
  [
    'hangs in the middle of a manifest',
    'manifest',
    'unreachable',
    () => (_seen, outgoing) => void outgoing.writeHead(200).write('{'),
  ],
  [
    'ends in the middle of a blob',
    'blob',
    'unreachable',
    () => (_seen, outgoing) =>
      void outgoing.writeHead(200, { 'content-length': 7 }).write('con', () => outgoing.destroy()),
  ],
  ['hangs up', 'hasBlob', 'unreachable', () => (_seen, outgoing) => void outgoing.destroy()],
  [
    'speaks no HTTP',
    'tags',
    'unreachable',
    () => (_seen, outgoing) => void outgoing.socket?.end('220 smtp.example ESMTP\r\n'),
  ],
  [
    'speaks another protocol from now on',
    'tags',
    'unreachable',
    () => (_seen, outgoing) =>
      void outgoing.socket?.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  ],
]

test.for([...lies, ...elsewhere, ...moods])(
  'a registry that %s, asked for %s, is a failure of the kind %s',
  expectFailure,
)
