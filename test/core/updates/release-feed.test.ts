import { findIncompatibility } from '@platform/core/updates/compatibility'
import { infrastructureRevision } from '@platform/core/updates/infrastructure'
import type { Release } from '@platform/core/updates/release-document'
import { fetchFunction, findRelease, newestRelease, releaseByDigest } from '@platform/core/updates/release-feed'
import { digestOf } from '@platform/oci/digest'
import { signImage } from '@platform/oci/signature/sign'
import { type Manifest, mediaTypes } from '@platform/oci/types'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { errorOf } from '../../support/fixtures.ts'
import { sampled } from '../../support/long.ts'
import type { ReleaseWish, Signer } from '../../support/release.ts'

const registry = await vi.hoisted(async () => (await import('../support/release-registry.ts')).startReleaseFixtures())

afterAll(registry.close)
beforeEach(registry.clear)

const { client, repository, push } = registry
const source = `${registry.host}/${repository}`

describe('a release', () => {
  test('is found by its version: what it says of itself, by which digest, and who has signed it', async () => {
    const { digest, document } = await push('1.2.0', { document: { releaseNotesUrl: 'https://example.com/1.2.0' } })
    const release = { document, repository: source, digest, verifiedBy: 'releases' }
    expect(await findRelease('1.2.0')).toEqual(release)
    expect(await releaseByDigest(source, digest)).toEqual(release)
    expect(await newestRelease('1.1.9')).toEqual({ release, refused: [] })
  })

  test('with a build in its version stands under a tag without a plus', async () => {
    await push('1.2.0+build.7')
    expect((await findRelease('1.2.0+build.7')).document.version).toBe('1.2.0+build.7')
    expect((await newestRelease('1.1.0')).release?.document.version).toBe('1.2.0+build.7')
  })

  test('may be signed in the other layout of cosign, and by several keys of which one is trusted', async () => {
    const { digest } = await push('1.2.0', { signer: 'stranger' })
    await signImage(client, repository, digest, registry.keys.release.privateKeyPem, { layout: 'tag' })
    expect(await findRelease('1.2.0')).toMatchObject({ verifiedBy: 'releases' })
  })

  test('hands out its functions, and no others', async () => {
    const zip = Buffer.from('not really a zip')
    const { document } = await push('1.2.0', { functions: { health: zip, 'queue/jobs': zip.subarray(1) } })
    const release = await findRelease('1.2.0')
    expect(Buffer.from(await fetchFunction(release, 'health'))).toEqual(zip)
    expect(Buffer.from(await fetchFunction(release, 'queue/jobs'))).toEqual(zip.subarray(1))
    expect(document.functions['health']).toEqual({ digest: digestOf(zip), size: zip.length })
    for (const name of ['clusters', 'constructor', '__proto__', '../health']) {
      expect((await errorOf(fetchFunction(release, name))).code).toBe('version_not_available')
    }
  })

  test('whose function is not in the registry any more hands out nothing in its place', async () => {
    await push('1.2.0')
    const release = await findRelease('1.2.0')
    const gone = { digest: digestOf('gone'), size: 4 }
    const without: Release = { ...release, document: { ...release.document, functions: { health: gone } } }
    expect((await errorOf(fetchFunction(without, 'health'))).code).toBe('version_not_available')
  })
})

describe('the newest release', () => {
  test('is the highest stable version above the current one, by the precedence of versions', async () => {
    for (const version of ['1.9.0', '1.10.0', '0.9.0', '1.2.0', '2.0.0-rc.1']) await push(version)
    expect((await newestRelease('1.2.0')).release?.document.version).toBe('1.10.0')
    expect(await newestRelease('1.10.0')).toEqual({ refused: [] })
    expect(await newestRelease('3.0.0')).toEqual({ refused: [] })
  })

  test('is a stable one for a platform that runs a prerelease of it', async () => {
    await push('2.0.0')
    expect((await newestRelease('2.0.0-rc.1')).release?.document.version).toBe('2.0.0')
  })

  test('is found behind newer ones that cannot be applied, and those are told with the reason', async () => {
    await push('1.2.0')
    await push('1.3.0', { document: { minFrom: '1.2.0' } })
    await push('1.4.0', { document: { infrastructure: '0'.repeat(64) } })
    await push('9.9.9', { signer: false })
    const { release, refused } = await newestRelease('1.1.0')
    expect(release?.document.version).toBe('1.2.0')
    expect(refused).toEqual([
      { version: '9.9.9', reason: expect.stringContaining('No signature') },
      { version: '1.4.0', reason: expect.stringMatching(/other infrastructure.*npm ci && npm start/) },
      { version: '1.3.0', reason: expect.stringContaining('requires version 1.2.0 or later') },
    ])
  })

  test('is none where tags name no versions, or absurd ones', async () => {
    const bytes = Buffer.from(JSON.stringify(await manifestOf('1.0.0')))
    const tags = ['latest', 'v9.0.0', '9.0', '9.0.0.0', '09.0.0', '9.0.0-', '9.0.0_', '9_0_0', '99999999999999999.0.0']
    for (const tag of tags) await client.putManifest(repository, tag, bytes, mediaTypes.manifest)
    expect(await newestRelease('0.1.0')).toMatchObject({ release: { document: { version: '1.0.0' } }, refused: [] })
    await client.remove(repository, '1.0.0')
    expect(await newestRelease('0.1.0')).toEqual({ refused: [] })
  })

  test('is none where the repository does not exist any more, and nothing is refused then', async () => {
    expect(await newestRelease('0.1.0')).toEqual({ refused: [] })
  })
})

async function manifestOf(version: string): Promise<Manifest> {
  await push(version)
  const found = await client.manifest(repository, version)
  return found?.content as Manifest
}

test.each(['', 'latest', '1.2', 'v1.2.0', '../../x', '1.2.0 ', 'ä', '9'.repeat(128), `1.2.0-${'x'.repeat(130)}`])(
  'a version that can be none is not asked for: %j',
  async (version) => {
    expect((await errorOf(findRelease(version))).code).toBe('version_not_available')
  },
)

test('a digest is looked for in a repository alone', async () => {
  const digest = digestOf('x')
  for (const place of ['', 'here', `${source}:1.2.0`, `https://${source}`, `${source}@${digest}`]) {
    expect((await errorOf(releaseByDigest(place, digest))).code).toBe('version_not_available')
  }
  expect((await errorOf(releaseByDigest(source, digest))).code).toBe('version_not_available')
  expect((await errorOf(releaseByDigest(source, '1.2.0'))).code).toBe('version_not_available')
})

test('what is in the way of a release is told, and nothing else', async () => {
  const { document } = await push('1.2.0')
  const release = await findRelease('1.2.0')
  const other = (more: object): Release => ({ ...release, document: { ...document, ...more } })
  const obstacles = [
    findIncompatibility(release, '1.1.0'),
    findIncompatibility(release, '1.2.0-rc.1'),
    findIncompatibility(other({ minFrom: '1.1.0' }), '1.1.0'),
  ]
  expect(obstacles).toEqual([undefined, undefined, undefined])
  expect(document.infrastructure).toBe(infrastructureRevision())
  expect(findIncompatibility(release, '1.2.0')).toMatchObject({
    code: 'version_not_available',
    reason: expect.stringMatching(/not newer/),
  })
  expect(findIncompatibility(release, '1.2.0+build')).toMatchObject({ reason: expect.stringMatching(/not newer/) })
  expect(findIncompatibility(release, '2.0.0')).toMatchObject({ reason: expect.stringMatching(/not newer/) })
  expect(findIncompatibility(other({ minFrom: '1.1.1' }), '1.1.0')).toMatchObject({ code: 'version_not_available' })
  expect(findIncompatibility(other({ version: '1.2.0-rc.1' }), '1.1.0')).toMatchObject({
    reason: expect.stringMatching(/prerelease/),
  })
  expect(findIncompatibility(other({ infrastructure: 'f'.repeat(64) }), '1.1.0')).toMatchObject({
    code: 'infrastructure_update_required',
  })
})

afterAll(registry.close)
/** What somebody may put under the tag of a version, and what is said of it. */
const bad: [name: string, wish: ReleaseWish & { signer?: Signer }, reason: RegExp][] = [
  ['is not signed', { signer: false }, /No signature/],
  ['is signed by a key that signs modules', { signer: 'module' }, /no trusted key/],
  ['is signed by a key that nobody knows', { signer: 'stranger' }, /no trusted key/],
  ['says that it is another version', { document: { version: '1.3.0' } }, /release 1\.3\.0 under another tag/],
  ['says that it is an older version', { document: { version: '0.0.9' } }, /release 0\.0\.9 under another tag/],
  ['is of another build', { document: { version: '1.2.0+other' } }, /under another tag/],
  ['says that it is no version', { document: { version: 'latest' } }, /document is invalid/],
  ['says nothing', { document: '' }, /document is invalid/],
  ['says something that is not JSON', { document: 'version: 1.2.0' }, /document is invalid/],
  ['says a list', { document: '[]' }, /document is invalid/],
  ['says null', { document: 'null' }, /document is invalid/],
  ['says too much', { document: JSON.stringify({ x: 'x'.repeat(256 * 1024) }) }, /the limit/],
  [
    'says where its notes are by a script',
    { document: { releaseNotesUrl: 'javascript:alert(1)' } },
    /document is invalid/,
  ],
  ['needs no infrastructure that can be', { document: { infrastructure: 'any' } }, /document is invalid/],
  ['names a function out of its folder', { document: { functions: { '../x': sizes('x') } } }, /document is invalid/],
  ['has no functions at all', { functions: {} }, /do not match its document/],
  ['says of a function that it is not in its layers', { document: { functions: {} } }, /do not match its document/],
  [
    'has a function that it does not say',
    { document: { functions: { health: sizes('x') } } },
    /do not match its document/,
  ],
  [
    'has a layer more than it says',
    { tamper: (manifest) => ({ ...manifest, layers: [...manifest.layers, manifest.layers[0]] }) },
    /do not match its document/,
  ],
  [
    'has more functions than anybody needs',
    { functions: Object.fromEntries(Array.from({ length: 201 }, (_, index) => [nameOf(index), Buffer.from('x')])) },
    /do not match its document/,
  ],
  [
    'has a function that is too large',
    {
      functions: { health: Buffer.from('x') },
      document: { functions: { health: { ...sizes('x'), size: 2 ** 26 } } },
      tamper: (manifest) => ({ ...manifest, layers: manifest.layers.map((layer) => ({ ...layer, size: 2 ** 26 })) }),
    },
    /do not match its document/,
  ],
  [
    'lacks a layer',
    { tamper: (manifest) => ({ ...manifest, layers: manifest.layers.slice(1) }) },
    /do not match its document/,
  ],
  [
    'has a layer twice',
    { tamper: (manifest) => ({ ...manifest, layers: [...manifest.layers.slice(1), manifest.layers[1]] }) },
    /do not match its document/,
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
    /do not match its document/,
  ],
  [
    'has layers that name nothing',
    {
      tamper: (manifest) => ({
        ...manifest,
        layers: manifest.layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size })),
      }),
    },
    /do not match its document/,
  ],
  [
    'has layers of another kind',
    {
      tamper: (manifest) => ({
        ...manifest,
        layers: manifest.layers.map((layer) => ({ ...layer, mediaType: mediaTypes.layer })),
      }),
    },
    /do not match its document/,
  ],
  ['is another artifact', { tamper: (manifest) => ({ ...manifest, artifactType: 'x/y' }) }, /not a release/],
  [
    'is an image',
    {
      tamper: ({ artifactType, ...manifest }) => ({ ...manifest, annotations: { artifactType: String(artifactType) } }),
    },
    /not a release/,
  ],
  [
    'has a document of another kind',
    { tamper: (manifest) => ({ ...manifest, config: { ...manifest.config, mediaType: mediaTypes.config } }) },
    /not a release/,
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
  const byName = await errorOf(findRelease('1.2.0'))
  expect([byName.code, byName.message]).toEqual(['version_not_available', expect.stringMatching(reason)])
  expect(await newestRelease('0.1.0')).toEqual({
    refused: [{ version: '1.2.0', reason: expect.stringMatching(reason) }],
  })
  // By its digest it is what it says, under whatever tag it lies.
  if (!String(reason).includes('tag')) expect((await errorOf(releaseByDigest(source, digest))).message).toMatch(reason)
})

test('a release whose manifest was changed after it was signed is none', async () => {
  const { digest } = await push('1.2.0')
  const manifest = (await client.manifest(repository, '1.2.0'))?.content as Manifest
  const changed = Buffer.from(JSON.stringify({ ...manifest, annotations: { more: 'x' } }))
  await client.putManifest(repository, '1.2.0', changed, mediaTypes.manifest)
  expect((await errorOf(findRelease('1.2.0'))).message).toMatch(/No signature/)
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
  expect((await errorOf(findRelease('1.3.0'))).message).toMatch(/is for sha256:/)
})
