import { RegistryError } from '@platform/oci/error'
import { openBundle, sealBundle } from '@platform/oci/signature/envelope'
import { readPublicKey } from '@platform/oci/signature/key'
import { signatureAnnotation, signatureTag, simpleSigningType } from '@platform/oci/signature/sign'
import { verifyImage } from '@platform/oci/signature/verify'
import { type Manifest, mediaTypes } from '@platform/oci/types'
import { describe, expect, test } from 'vitest'
import {
  privatePem,
  publicPem,
  put,
  putBundle,
  putTagged,
  repository,
  trust,
  type SignatureFixtures,
  startSignatureFixtures,
} from './stored.ts'

const atMs = Date.parse('2025-11-22T00:00:00Z')
const p256 = [trust('p256')]

const verify = ({ registry, ours }: SignatureFixtures, keys = p256) =>
  verifyImage(registry, repository, [ours], keys, { atMs })

describe('a verdict', () => {
  test('names the key, the layout and the digest', async () => {
    const fixtures = await startSignatureFixtures()
    await put.tag(fixtures, fixtures.index, 'rsa')
    const keys = [trust('p256'), trust('rsa', { name: 'Vendor' })]
    const verdict = await verifyImage(fixtures.registry, repository, [fixtures.ours, fixtures.index], keys, { atMs })
    expect(verdict).toEqual({ isVerified: true, by: 'Vendor', layout: 'tag', digest: fixtures.index })
  })

  test('names the key and the image of a copied signature', async () => {
    const fixtures = await startSignatureFixtures()
    await put.referrer(fixtures, fixtures.ours, 'p256', { names: fixtures.theirs })
    const verdict = await verify(fixtures, [trust('p256', { name: 'Vendor' })])
    const reason = `A signature by Vendor is stored with ${fixtures.ours}, but is for ${fixtures.theirs}.`
    expect(verdict).toEqual({ isVerified: false, problem: 'signature_of_other_image', reason })
  })

  test('does not repeat other text of a payload', async () => {
    const fixtures = await startSignatureFixtures()
    await put.tag(fixtures, fixtures.ours, 'p256', { names: 'sha256:<script>' })
    const reason = `A signature by p256 is stored with ${fixtures.ours}, but is for an invalid digest.`
    expect(await verify(fixtures)).toMatchObject({ reason })
  })

  test('reports the most specific of several problems', async () => {
    const fixtures = await startSignatureFixtures()
    await put.tag(fixtures, fixtures.ours, 'p256', { mediaType: 'application/json' })
    await put.tag(fixtures, fixtures.ours, 'other')
    expect(await verify(fixtures)).toMatchObject({ problem: 'unknown_key' })
    await put.tag(fixtures, fixtures.ours, 'p256', { names: fixtures.theirs })
    expect(await verify(fixtures)).toMatchObject({ problem: 'signature_of_other_image' })
  })
})

describe('a public key is not accepted', () => {
  test.each([
    ['if it is private', () => privatePem('p256')],
    ['if it is weak', () => publicPem('weak')],
    ['on an uncommon curve', () => publicPem('bitcoin')],
    ['if it is not a PEM', () => 'no key'],
    ['if it is broken', () => publicPem('p256').replace('M', 'N')],
  ])('%s', async (_name, pem) => {
    expect(readPublicKey(pem())).toBeUndefined()
    const fixtures = await startSignatureFixtures()
    for (const key of ['p256', 'weak', 'bitcoin'] as const) await put.tag(fixtures, fixtures.ours, key)
    expect(await verify(fixtures, [{ name: 'it', pem: pem() }])).toMatchObject({ problem: 'unknown_key' })
    expect(await verify(fixtures, [{ name: 'it', pem: pem() }, ...p256])).toMatchObject({
      isVerified: true,
      by: 'p256',
    })
  })
})

describe('limits', () => {
  test.each(['referrer', 'tag'] as const)('%s: at most 50 signatures are read', async (layout) => {
    const fixtures = await startSignatureFixtures()
    for (let count = 0; count < 50; count += 1)
      await put[layout](fixtures, fixtures.ours, 'other', { names: `sha256:${count}` })
    let blobs = 0
    const blob: typeof fixtures.registry.blob = (...input) => {
      blobs += 1
      return fixtures.registry.blob(...input)
    }
    await put[layout](fixtures, fixtures.ours, 'p256')
    expect(await verify({ ...fixtures, registry: { ...fixtures.registry, blob } })).toMatchObject({
      problem: 'unknown_key',
    })
    expect(blobs).toBe(50)
  })

  test('a bundle has at most 1 MiB', async () => {
    const fixtures = await startSignatureFixtures()
    await put.referrer(fixtures, fixtures.ours, 'p256', { bundle: (each) => ({ ...each, more: 'x'.repeat(2 ** 20) }) })
    expect(await verify(fixtures)).toMatchObject({ problem: 'broken_signature' })
  })

  test('a payload has at most 64 KiB', async () => {
    const fixtures = await startSignatureFixtures()
    await put.tag(fixtures, fixtures.ours, 'p256', {
      text: (each) => Buffer.concat([each, Buffer.alloc(64 * 1024, ' ')]),
    })
    expect(await verify(fixtures)).toMatchObject({ problem: 'broken_signature' })
  })

  test('an index under the signature tag is ignored', async () => {
    const fixtures = await startSignatureFixtures()
    const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: [] }
    const tag = signatureTag(fixtures.ours)
    await fixtures.registry.putManifest(repository, tag, Buffer.from(JSON.stringify(index)), mediaTypes.index)
    expect(await verify(fixtures)).toMatchObject({ problem: 'unsigned' })
  })
})

const failing = async (method: 'referrers' | 'manifest' | 'blob', problem: RegistryError['problem']) => {
  const fixtures = await startSignatureFixtures()
  await put.referrer(fixtures, fixtures.ours, 'other')
  await put.tag(fixtures, fixtures.ours, 'other')
  const failure = async () => {
    throw new RegistryError(problem, problem)
  }
  return verify({ ...fixtures, registry: { ...fixtures.registry, [method]: failure } })
}

describe('a registry error', () => {
  for (const method of ['referrers', 'manifest', 'blob'] as const) {
    test.each(['unreachable', 'unauthorized', 'refused'] as const)(
      `is not a verdict: %s at ${method}`,
      async (problem) => {
        await expect(failing(method, problem)).rejects.toMatchObject({ name: 'RegistryError', problem })
      },
    )

    test.each(['invalid', 'not_found', 'too_large'] as const)(
      `means that there is no signature: %s at ${method}`,
      async (problem) => {
        expect(await failing(method, problem)).toMatchObject({ isVerified: false })
      },
    )
  }

  test('at the list of referrers does not hide a signature under the tag', async () => {
    const fixtures = await startSignatureFixtures()
    const failure = new RegistryError('invalid', 'no list')
    const broken = { ...fixtures, registry: { ...fixtures.registry, referrers: () => Promise.reject(failure) } }
    expect(await verify(broken)).toMatchObject({ problem: 'broken_signature' })
    await put.tag(fixtures, fixtures.ours, 'p256')
    expect(await verify(broken)).toMatchObject({ isVerified: true })
  })

  test('of another class is rethrown', async () => {
    const fixtures = await startSignatureFixtures()
    const error = new TypeError('a programming error')
    const registry = { ...fixtures.registry, referrers: () => Promise.reject(error) }
    await expect(verify({ ...fixtures, registry })).rejects.toBe(error)
  })
})

test('rejects a signature that was fixtures for the other layout', async () => {
  const fixtures = await startSignatureFixtures()
  await put.referrer(fixtures, fixtures.ours, 'p256')
  const bundle = [...fixtures.registry.blobs.values()].map(openBundle).find((each) => each !== undefined)
  await put.tag(fixtures, fixtures.theirs, 'p256', { names: fixtures.ours })
  const tag = (await fixtures.registry.manifest(repository, signatureTag(fixtures.theirs)))?.content as Manifest
  const [layer] = tag.layers
  fixtures.registry.manifests.clear()
  // Stores the payload of the envelope under the tag, and the payload of the tag in an envelope.
  const blob = await fixtures.registry.putBlob(repository, bundle!.signed)
  const annotations = { [signatureAnnotation]: bundle!.signature.toString('base64') }
  await putTagged(fixtures.registry, fixtures.ours, [{ mediaType: simpleSigningType, ...blob, annotations }])
  expect(await verify(fixtures)).toMatchObject({ problem: 'signature_of_other_image' })
  fixtures.registry.manifests.clear()
  const signature = Buffer.from(layer!.annotations![signatureAnnotation]!, 'base64')
  const text = await fixtures.registry.blob(repository, layer!)
  await putBundle(fixtures.registry, fixtures.ours, sealBundle(text, signature, 'any'))
  expect(await verify(fixtures)).toMatchObject({ problem: 'unknown_key' })
})
