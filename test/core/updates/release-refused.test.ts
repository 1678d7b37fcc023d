import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { findRelease, newestRelease, releaseByDigest } from '@platform/core/updates/release-feed'
import { digestOf } from '@platform/oci/digest'
import { type Manifest, mediaTypes } from '@platform/oci/types'
import { type ReleaseWish, type Signer } from '../../support/release.ts'
import { refusal } from '../support/refusal.ts'
import { sampled } from '../../support/long.ts'

const world = await vi.hoisted(async () => (await import('../support/release-hoist.ts')).startReleaseWorld())
afterAll(world.close)
beforeEach(world.clear)

const { client, repository, push } = world
const source = `${world.host}/${repository}`

/** What somebody may put under the tag of a version, and what is said of it. */
const bad: [name: string, wish: ReleaseWish & { signer?: Signer }, reason: RegExp][] = [
  ['is not signed', { signer: false }, /No signature/],
  ['is signed by a key that signs modules', { signer: 'module' }, /no trusted key/],
  ['is signed by a key that nobody knows', { signer: 'stranger' }, /no trusted key/],
  ['says that it is another version', { document: { version: '1.3.0' } }, /release 1\.3\.0 under another tag/],
  ['says that it is an older version', { document: { version: '0.0.9' } }, /release 0\.0\.9 under another tag/],
  ['is of another build', { document: { version: '1.2.0+other' } }, /under another tag/],
  ['says that it is no version', { document: { version: 'latest' } }, /cannot be understood/],
  ['says nothing', { document: '' }, /cannot be understood/],
  ['says something that is not JSON', { document: 'version: 1.2.0' }, /cannot be understood/],
  ['says a list', { document: '[]' }, /cannot be understood/],
  ['says null', { document: 'null' }, /cannot be understood/],
  ['says too much', { document: JSON.stringify({ x: 'x'.repeat(256 * 1024) }) }, /the limit/],
  ['says where its notes are by a script', { document: { releaseNotesUrl: 'javascript:alert(1)' } }, /understood/],
  ['needs no infrastructure that can be', { document: { infrastructure: 'any' } }, /cannot be understood/],
  ['names a function out of its folder', { document: { functions: { '../x': sizes('x') } } }, /cannot be understood/],
  ['has no functions at all', { functions: {} }, /not what it says/],
  ['says of a function that it is not in its layers', { document: { functions: {} } }, /not what it says/],
  ['has a function that it does not say', { document: { functions: { health: sizes('x') } } }, /not what it says/],
  [
    'has a layer more than it says',
    { tamper: (manifest) => ({ ...manifest, layers: [...manifest.layers, manifest.layers[0]] }) },
    /not what it says/,
  ],
  [
    'has more functions than anybody needs',
    { functions: Object.fromEntries(Array.from({ length: 201 }, (_, index) => [nameOf(index), Buffer.from('x')])) },
    /not what it says/,
  ],
  [
    'has a function that is too large',
    {
      functions: { health: Buffer.from('x') },
      document: { functions: { health: { ...sizes('x'), size: 2 ** 26 } } },
      tamper: (manifest) => ({ ...manifest, layers: manifest.layers.map((layer) => ({ ...layer, size: 2 ** 26 })) }),
    },
    /not what it says/,
  ],
  ['lacks a layer', { tamper: (manifest) => ({ ...manifest, layers: manifest.layers.slice(1) }) }, /not what it says/],
  [
    'has a layer twice',
    { tamper: (manifest) => ({ ...manifest, layers: [...manifest.layers.slice(1), manifest.layers[1]] }) },
    /not what it says/,
  ],
  [
    'has two layers for each other',
    {
      tamper: (manifest) => {
        const [one, two, ...others] = manifest.layers
        const swapped = [
          { ...one, annotations: two?.annotations },
          { ...two, annotations: one?.annotations },
        ]
        return { ...manifest, layers: [...swapped, ...others] }
      },
    },
    /not what it says/,
  ],
  [
    'has layers that name nothing',
    {
      tamper: (manifest) => ({
        ...manifest,
        layers: manifest.layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size })),
      }),
    },
    /not what it says/,
  ],
  [
    'has layers of another kind',
    {
      tamper: (manifest) => ({
        ...manifest,
        layers: manifest.layers.map((layer) => ({ ...layer, mediaType: mediaTypes.layer })),
      }),
    },
    /not what it says/,
  ],
  ['is another artifact', { tamper: (manifest) => ({ ...manifest, artifactType: 'x/y' }) }, /something else/],
  [
    'is an image',
    {
      tamper: ({ artifactType, ...manifest }) => ({ ...manifest, annotations: { artifactType: String(artifactType) } }),
    },
    /something else/,
  ],
  [
    'has a document of another kind',
    { tamper: (manifest) => ({ ...manifest, config: { ...manifest.config, mediaType: mediaTypes.config } }) },
    /something else/,
  ],
]

function nameOf(index: number): string {
  return String(index).replaceAll(/\d/g, (digit) => 'abcdefghij'.charAt(Number(digit)))
}

function sizes(content: string) {
  return { digest: digestOf(content), size: content.length }
}

test.each(sampled(bad, 2))('what %s is no release, whoever asks for it', async (_, wish, reason) => {
  const { digest } = await push('1.2.0', wish)
  const byName = await refusal(findRelease('1.2.0'))
  expect([byName.code, byName.message]).toEqual(['version_not_available', expect.stringMatching(reason)])
  expect(await newestRelease('0.1.0')).toEqual({
    refused: [{ version: '1.2.0', reason: expect.stringMatching(reason) }],
  })
  // By its digest it is what it says, under whatever tag it lies.
  if (!String(reason).includes('tag')) expect((await refusal(releaseByDigest(source, digest))).message).toMatch(reason)
})

test('a release whose manifest was changed after it was signed is none', async () => {
  const { digest } = await push('1.2.0')
  const manifest = (await client.manifest(repository, '1.2.0'))?.content as Manifest
  const changed = Buffer.from(JSON.stringify({ ...manifest, annotations: { more: 'x' } }))
  await client.putManifest(repository, '1.2.0', changed, mediaTypes.manifest)
  expect((await refusal(findRelease('1.2.0'))).message).toMatch(/No signature/)
  expect(await releaseByDigest(source, digest)).toMatchObject({ digest })
})

test('the signature of one release that lies with another makes none of that', async () => {
  const good = await push('1.2.0')
  const other = await push('1.3.0', { signer: false })
  const [referrer] = await client.referrers(repository, good.digest)
  const signature = (await client.manifest(repository, referrer?.digest ?? ''))?.content as Manifest
  const subject = await client.resolve(repository, other.digest)
  if (subject === undefined) throw new Error('It is gone.')
  await client.putReferrer(repository, { ...signature, subject })
  expect((await refusal(findRelease('1.3.0'))).message).toMatch(/is for sha256:/)
})
