import { findIncompatibility } from '@platform/core/updates/compatibility'
import { infrastructureRevision } from '@platform/core/updates/infrastructure'
import type { Release } from '@platform/core/updates/release-document'
import { fetchFunction, findRelease, newestRelease, releaseByDigest } from '@platform/core/updates/release-feed'
import { digestOf } from '@platform/oci/digest'
import { signImage } from '@platform/oci/signature/sign'
import { type Manifest, mediaTypes } from '@platform/oci/types'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { errorOf, expectError } from '../../support/fixtures.ts'
import { sampled } from '../../support/long.ts'
import type { ReleaseOverrides, Signer } from '../../support/release.ts'

const registry = await vi.hoisted(async () => (await import('../../support/release.ts')).startReleaseFixtures())
afterAll(registry.close)
beforeEach(registry.clear)

const { client, repository, push } = registry
const source = `${registry.host}/${repository}`
const unavailable = 'version_not_available'
const newestVersion = async (current: string) => (await newestRelease(current)).release?.document.version
const messageOf = async (call: Promise<unknown>) => (await errorOf(call)).message

async function manifestOf(reference: string): Promise<Manifest> {
  const manifest = await client.manifest(repository, reference)
  return manifest?.content as Manifest
}
const putManifest = (tag: string, manifest: object) =>
  client.putManifest(repository, tag, Buffer.from(JSON.stringify(manifest)), mediaTypes.manifest)

describe('a release', () => {
  test('is found by version and by digest', async () => {
    const { digest, document } = await push('1.2.0', { document: { releaseNotesUrl: 'https://example.com/1.2.0' } })
    const release = { document, repository: source, digest, verifiedBy: 'releases' }
    expect(await findRelease('1.2.0')).toEqual(release)
    expect(await releaseByDigest(source, digest)).toEqual(release)
    expect(await newestRelease('1.1.9')).toEqual({ release, refused: [] })
  })

  test('may have build metadata, which its tag encodes', async () => {
    await push('1.2.0+build.7')
    expect((await findRelease('1.2.0+build.7')).document.version).toBe('1.2.0+build.7')
    expect(await newestVersion('1.1.0')).toBe('1.2.0+build.7')
  })

  test('may have several signatures, also in the tag layout', async () => {
    const { digest } = await push('1.2.0', { signer: 'stranger' })
    await signImage(client, repository, digest, registry.keys.release.privateKeyPem, { layout: 'tag' })
    expect(await findRelease('1.2.0')).toMatchObject({ verifiedBy: 'releases' })
  })

  test('provides only the functions that its document lists', async () => {
    const zip = Buffer.from('not really a zip')
    const { document } = await push('1.2.0', { functions: { health: zip, 'queue/batches': zip.subarray(1) } })
    const release = await findRelease('1.2.0')
    expect(Buffer.from(await fetchFunction(release, 'health'))).toEqual(zip)
    expect(Buffer.from(await fetchFunction(release, 'queue/batches'))).toEqual(zip.subarray(1))
    expect(document.functions['health']).toEqual({ digest: digestOf(zip), size: zip.length })
    const functions = { health: { digest: digestOf('deleted'), size: 7 } }
    await expectError(fetchFunction({ ...release, document: { ...document, functions } }, 'health'), unavailable)
    for (const name of ['clusters', 'constructor', '__proto__', '../health']) {
      await expectError(fetchFunction(release, name), unavailable)
    }
  })
})

describe('the newest release', () => {
  test('is the highest stable version above the current one', async () => {
    for (const version of ['1.9.0', '1.10.0', '0.9.0', '1.2.0', '2.0.0-rc.1']) await push(version)
    expect(await newestVersion('1.2.0')).toBe('1.10.0')
    expect(await newestVersion('1.10.0-rc.1')).toBe('1.10.0')
    for (const current of ['1.10.0', '3.0.0']) expect(await newestRelease(current)).toEqual({ refused: [] })
  })

  test('is found below newer ones that cannot be applied, which are returned with the reasons', async () => {
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

  test('ignores tags that are not versions, and a missing repository', async () => {
    expect(await newestRelease('0.1.0')).toEqual({ refused: [] })
    await push('1.0.0')
    const manifest = await manifestOf('1.0.0')
    const tags = 'latest v9.0.0 9.0 9.0.0.0 09.0.0 9.0.0- 9.0.0_ 9_0_0 99999999999999999.0.0'.split(' ')
    for (const tag of tags) await putManifest(tag, manifest)
    expect(await newestRelease('0.1.0')).toMatchObject({ release: { document: { version: '1.0.0' } }, refused: [] })
    await client.remove(repository, '1.0.0')
    expect(await newestRelease('0.1.0')).toEqual({ refused: [] })
  })
})

test.each(['', 'latest', '1.2', 'v1.2.0', '../../x', '1.2.0 ', 'ä', '9'.repeat(128), `1.2.0-${'x'.repeat(130)}`])(
  'rejects the version %j',
  async (version) => expectError(findRelease(version), unavailable),
)

test('rejects invalid repositories and unknown digests', async () => {
  const digest = digestOf('x')
  for (const place of ['', 'here', `${source}:1.2.0`, `https://${source}`, `${source}@${digest}`, source]) {
    await expectError(releaseByDigest(place, digest), unavailable)
  }
  await expectError(releaseByDigest(source, '1.2.0'), unavailable)
})

test('finds incompatibilities', async () => {
  const { document } = await push('1.2.0')
  const release = await findRelease('1.2.0')
  const check = (current: string, change: object = {}) => {
    const changedRelease: Release = { ...release, document: { ...document, ...change } }
    const { code, reason } = findIncompatibility(changedRelease, current) ?? {}
    return code && `${code}: ${reason}`
  }
  expect([check('1.1.0'), check('1.2.0-rc.1'), check('1.1.0', { minFrom: '1.1.0' })]).toEqual(Array(3).fill(undefined))
  expect(document.infrastructure).toBe(infrastructureRevision())
  for (const current of ['1.2.0', '1.2.0+build', '2.0.0']) {
    expect(check(current)).toMatch(/version_not_available: .*not newer/)
  }
  expect(check('1.1.0', { minFrom: '1.1.1' })).toMatch(/^version_not_available/)
  expect(check('1.1.0', { version: '1.2.0-rc.1' })).toMatch(/prerelease/)
  expect(check('1.1.0', { infrastructure: 'f'.repeat(64) })).toMatch(/^infrastructure_update_required/)
})

const functionOf = (content: string) => ({ digest: digestOf(content), size: content.length })
const letters = (index: number) => String(index).replaceAll(/\d/g, (digit) => 'abcdefghij'.charAt(Number(digit)))
const manyFunctions = Object.fromEntries(Array.from({ length: 201 }, (_, index) => [letters(index), Buffer.from('x')]))
const invalidDocument = /document is invalid/
const layerMismatch = /do not match its document/
const tamperLayers = (change: (layers: any[]) => any[]): ReleaseOverrides => ({
  tamper: (manifest) => ({ ...manifest, layers: change(manifest.layers) }),
})
const tamperEach = (change: object) => tamperLayers((layers) => layers.map((layer) => ({ ...layer, ...change })))

const invalidReleases: [name: string, options: ReleaseOverrides & { signer?: Signer }, reason: RegExp][] = [
  ['without a signature', { signer: false }, /No signature/],
  ['signed by a module key', { signer: 'module' }, /no trusted key/],
  ['signed by an unknown key', { signer: 'stranger' }, /no trusted key/],
  ['of a newer version', { document: { version: '1.3.0' } }, /release 1\.3\.0 under another tag/],
  ['of an older version', { document: { version: '0.0.9' } }, /release 0\.0\.9 under another tag/],
  ['of another build', { document: { version: '1.2.0+other' } }, /under another tag/],
  ['of an invalid version', { document: { version: 'latest' } }, invalidDocument],
  ['with an empty document', { document: '' }, invalidDocument],
  ['with a document that is not JSON', { document: 'version: 1.2.0' }, invalidDocument],
  ['with a list as document', { document: '[]' }, invalidDocument],
  ['with null as document', { document: 'null' }, invalidDocument],
  ['with a document that is too large', { document: JSON.stringify({ x: 'x'.repeat(256 * 1024) }) }, /the limit/],
  ['with a script as notes', { document: { releaseNotesUrl: 'javascript:alert(1)' } }, invalidDocument],
  ['with an invalid infrastructure revision', { document: { infrastructure: 'any' } }, invalidDocument],
  ['with an invalid function name', { document: { functions: { '../x': functionOf('x') } } }, invalidDocument],
  ['without functions', { functions: {} }, layerMismatch],
  ['without functions in its document', { document: { functions: {} } }, layerMismatch],
  ['with another function in its layers', { document: { functions: { health: functionOf('x') } } }, layerMismatch],
  ['with an additional layer', tamperLayers((layers) => [...layers, layers[0]]), layerMismatch],
  ['with too many functions', { functions: manyFunctions }, layerMismatch],
  [
    'with a function that is too large',
    {
      functions: { health: Buffer.from('x') },
      document: { functions: { health: { ...functionOf('x'), size: 2 ** 26 } } },
      ...tamperEach({ size: 2 ** 26 }),
    },
    layerMismatch,
  ],
  ['with a missing layer', tamperLayers((layers) => layers.slice(1)), layerMismatch],
  ['with a duplicate layer', tamperLayers((layers) => [...layers.slice(1), layers[1]]), layerMismatch],
  [
    'with swapped layers',
    tamperLayers(([one, two, ...others]) => [
      { ...one, annotations: two.annotations },
      { ...two, annotations: one.annotations },
      ...others,
    ]),
    layerMismatch,
  ],
  ['with unnamed layers', tamperEach({ annotations: undefined }), layerMismatch],
  ['with layers of another type', tamperEach({ mediaType: mediaTypes.layer }), layerMismatch],
  ['of another artifact type', { tamper: (manifest) => ({ ...manifest, artifactType: 'x/y' }) }, /not a release/],
  ['without an artifact type', { tamper: (manifest) => ({ ...manifest, artifactType: undefined }) }, /not a release/],
  [
    'with a document of another type',
    { tamper: (manifest) => ({ ...manifest, config: { ...manifest.config, mediaType: mediaTypes.config } }) },
    /not a release/,
  ],
]

test.each(sampled(invalidReleases, 2))('rejects a release %s', async (_, options, reason) => {
  const { digest } = await push('1.2.0', options)
  const { code, message } = await errorOf(findRelease('1.2.0'))
  expect([code, message]).toEqual([unavailable, expect.stringMatching(reason)])
  const refusedReleases = [{ version: '1.2.0', reason: expect.stringMatching(reason) }]
  expect(await newestRelease('0.1.0')).toEqual({ refused: refusedReleases })
  // A read by digest uses no tag, so it accepts a release under a wrong tag.
  if (!String(reason).includes('tag')) expect(await messageOf(releaseByDigest(source, digest))).toMatch(reason)
})

test('rejects a manifest that was changed after it was signed', async () => {
  const { digest } = await push('1.2.0')
  await putManifest('1.2.0', { ...(await manifestOf('1.2.0')), annotations: { more: 'x' } })
  expect(await messageOf(findRelease('1.2.0'))).toMatch(/No signature/)
  expect(await releaseByDigest(source, digest)).toMatchObject({ digest })
})

test('rejects the signature of another release', async () => {
  const signedRelease = await push('1.2.0')
  const otherRelease = await push('1.3.0', { signer: false })
  const [referrer] = await client.referrers(repository, signedRelease.digest)
  const signature = await manifestOf(referrer?.digest ?? '')
  const subject = await client.resolve(repository, otherRelease.digest)
  if (subject === undefined) throw new Error('The release does not exist.')
  await client.putReferrer(repository, { ...signature, subject })
  expect(await messageOf(findRelease('1.3.0'))).toMatch(/is for sha256:/)
})
