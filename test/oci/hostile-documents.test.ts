import { mediaTypes } from '@platform/oci/types'
import { test } from 'vitest'
import { always, config, expectFailure, image, index, json, type Row } from './hostility.ts'

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)

const broken = (name: string, body: unknown, mediaType: string = mediaTypes.manifest): Row => [
  `has ${name} as a manifest`,
  'manifest',
  'invalid',
  always(json(body, { 'content-type': mediaType })),
]

const documents: Row[] = [
  broken('nothing', ''),
  broken('no JSON', '<html>'),
  broken('bytes that are no text', Buffer.from([0xff, 0xfe, 0x00])),
  broken('null', null),
  broken('a list', [image]),
  broken('a million lists in each other', nested(1_000_000)),
  broken('a deep member that nobody asked for', JSON.stringify(image).replace('{', `{"x":${nested(500_000)},`)),
  broken('an index and an image at once', { ...image, ...index }, mediaTypes.index),
  broken('an image and an index at once', { ...image, ...index, mediaType: mediaTypes.manifest }),
  broken('an image that calls itself an index', { ...image, mediaType: mediaTypes.index }),
  broken('an index that it calls an image', index),
  broken('an image of another version', { ...image, schemaVersion: 1 }),
  broken('an image without layers', { ...image, layers: undefined }),
  broken('an image whose layers are null', { ...image, layers: [null] }),
  broken('a negative size', { ...image, config: { ...config, size: -1 } }),
  broken('a size that is no whole number', { ...image, config: { ...config, size: 1.5 } }),
  broken('a size beyond all numbers', JSON.stringify(image).replace('"size":2', '"size":1e400')),
  broken('a digest that is a path', { ...image, config: { ...config, digest: 'sha256:../../../etc/passwd' } }),
  broken('a digest of another kind', { ...image, config: { ...config, digest: `md5:${'0'.repeat(32)}` } }),
  broken('notes that are no texts', { ...image, annotations: { a: { b: 'c' } } }),
  [
    'has an index that is none',
    'manifest',
    'invalid',
    always(json({ ...index, manifests: {} }, { 'content-type': mediaTypes.index })),
  ],
  ['has 5 MiB as a manifest', 'manifest', 'too_large', always(json(Buffer.alloc(5 << 20, ' ')))],
  ['tells tags that are no list', 'tags', 'invalid', always(json({ tags: 'latest' }))],
  ['tells tags that lead elsewhere', 'tags', 'invalid', always(json({ tags: ['../../other/manifests/x'] }))],
  ['tells repositories that lead elsewhere', 'repositories', 'invalid', always(json({ repositories: ['a/../b'] }))],
  ['tells 5 MiB of tags', 'tags', 'too_large', always(json({ tags: Array(1_000_000).fill('tag') }))],
  ['lists an image as what refers to it', 'referrers', 'invalid', always(json(image))],
]

test.for(documents)('a registry that %s, asked for %s, is a failure of the kind %s', expectFailure)
