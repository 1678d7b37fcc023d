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
  type World,
  startSignatureFixtures,
} from './stored.ts'

const atMs = Date.parse('2025-11-22T00:00:00Z')
const p256 = [trust('p256')]

const verify = ({ registry, ours }: World, keys = p256) => verifyImage(registry, repository, [ours], keys, { atMs })

describe('a verdict says', () => {
  test('who has signed what, and how', async () => {
    const made = await startSignatureFixtures()
    await put.tag(made, made.index, 'rsa')
    const keys = [trust('p256'), trust('rsa', { name: 'Vendor' })]
    const verdict = await verifyImage(made.registry, repository, [made.ours, made.index], keys, { atMs })
    expect(verdict).toEqual({ isVerified: true, by: 'Vendor', layout: 'tag', digest: made.index })
  })

  test('that a signature was copied, whose it is and what for', async () => {
    const made = await startSignatureFixtures()
    await put.referrer(made, made.ours, 'p256', { names: made.theirs })
    const verdict = await verify(made, [trust('p256', { name: 'Vendor' })])
    const reason = `A signature by Vendor lies with ${made.ours}, but is for ${made.theirs}.`
    expect(verdict).toEqual({ isVerified: false, problem: 'signature_of_other_image', reason })
  })

  test('nothing of what else a text names', async () => {
    const made = await startSignatureFixtures()
    await put.tag(made, made.ours, 'p256', { names: 'sha256:<script>' })
    const reason = `A signature by p256 lies with ${made.ours}, but is for something that is no image.`
    expect(await verify(made)).toMatchObject({ reason })
  })

  test('the most telling of several problems', async () => {
    const made = await startSignatureFixtures()
    await put.tag(made, made.ours, 'p256', { mediaType: 'application/json' })
    await put.tag(made, made.ours, 'other')
    expect(await verify(made)).toMatchObject({ problem: 'unknown_key' })
    await put.tag(made, made.ours, 'p256', { names: made.theirs })
    expect(await verify(made)).toMatchObject({ problem: 'signature_of_other_image' })
  })
})

describe('a key is not taken', () => {
  test.each([
    ['a private one', () => privatePem('p256')],
    ['a weak one', () => publicPem('weak')],
    ['one on a curve that nobody else takes', () => publicPem('bitcoin')],
    ['no key', () => 'no key'],
    ['a broken one', () => publicPem('p256').replace('M', 'N')],
  ])('that is %s', async (_name, pem) => {
    expect(readPublicKey(pem())).toBeUndefined()
    const made = await startSignatureFixtures()
    for (const key of ['p256', 'weak', 'bitcoin'] as const) await put.tag(made, made.ours, key)
    expect(await verify(made, [{ name: 'it', pem: pem() }])).toMatchObject({ problem: 'unknown_key' })
    expect(await verify(made, [{ name: 'it', pem: pem() }, ...p256])).toMatchObject({ isVerified: true, by: 'p256' })
  })
})

describe('limits', () => {
  test.each(['referrer', 'tag'] as const)('%s: no more than 50 signatures are looked at', async (layout) => {
    const made = await startSignatureFixtures()
    for (let count = 0; count < 50; count += 1)
      await put[layout](made, made.ours, 'other', { names: `sha256:${count}` })
    let blobs = 0
    const blob: typeof made.registry.blob = (...asked) => {
      blobs += 1
      return made.registry.blob(...asked)
    }
    await put[layout](made, made.ours, 'p256')
    expect(await verify({ ...made, registry: { ...made.registry, blob } })).toMatchObject({ problem: 'unknown_key' })
    expect(blobs).toBe(50)
  })

  test('a document of more than 1 MiB is none', async () => {
    const made = await startSignatureFixtures()
    await put.referrer(made, made.ours, 'p256', { bundle: (each) => ({ ...each, more: 'x'.repeat(2 ** 20) }) })
    expect(await verify(made)).toMatchObject({ problem: 'broken_signature' })
  })

  test('a text of more than 64 KiB is none', async () => {
    const made = await startSignatureFixtures()
    await put.tag(made, made.ours, 'p256', { text: (each) => Buffer.concat([each, Buffer.alloc(64 * 1024, ' ')]) })
    expect(await verify(made)).toMatchObject({ problem: 'broken_signature' })
  })

  test('of what stands under the tag and is no manifest, nothing is taken', async () => {
    const made = await startSignatureFixtures()
    const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: [] }
    const tag = signatureTag(made.ours)
    await made.registry.putManifest(repository, tag, Buffer.from(JSON.stringify(index)), mediaTypes.index)
    expect(await verify(made)).toMatchObject({ problem: 'unsigned' })
  })
})

const failing = async (method: 'referrers' | 'manifest' | 'blob', problem: RegistryError['problem']) => {
  const made = await startSignatureFixtures()
  await put.referrer(made, made.ours, 'other')
  await put.tag(made, made.ours, 'other')
  const failure = async () => {
    throw new RegistryError(problem, problem)
  }
  return verify({ ...made, registry: { ...made.registry, [method]: failure } })
}

describe('a registry that is of no help', () => {
  for (const method of ['referrers', 'manifest', 'blob'] as const) {
    test.each(['unreachable', 'unauthorized', 'refused'] as const)(
      `is a failure, and no verdict: %s at ${method}`,
      async (problem) => {
        await expect(failing(method, problem)).rejects.toMatchObject({ name: 'RegistryError', problem })
      },
    )

    test.each(['invalid', 'not_found', 'too_large'] as const)(
      `has nothing that counts: %s at ${method}`,
      async (problem) => {
        expect(await failing(method, problem)).toMatchObject({ isVerified: false })
      },
    )
  }

  test('with its list of referrers may have a signature under the tag', async () => {
    const made = await startSignatureFixtures()
    const failure = new RegistryError('invalid', 'no list')
    const broken = { ...made, registry: { ...made.registry, referrers: () => Promise.reject(failure) } }
    expect(await verify(broken)).toMatchObject({ problem: 'broken_signature' })
    await put.tag(made, made.ours, 'p256')
    expect(await verify(broken)).toMatchObject({ isVerified: true })
  })

  test('and a failure that is not the registry’s is passed on', async () => {
    const made = await startSignatureFixtures()
    const mistake = new TypeError('a mistake')
    const registry = { ...made.registry, referrers: () => Promise.reject(mistake) }
    await expect(verify({ ...made, registry })).rejects.toBe(mistake)
  })
})

test('a signature made for one layout is none in the other', async () => {
  const made = await startSignatureFixtures()
  await put.referrer(made, made.ours, 'p256')
  const bundle = [...made.registry.blobs.values()].map(openBundle).find((each) => each !== undefined)
  await put.tag(made, made.theirs, 'p256', { names: made.ours })
  const tag = (await made.registry.manifest(repository, signatureTag(made.theirs)))?.content as Manifest
  const [layer] = tag.layers
  made.registry.manifests.clear()
  // What the envelope's signature is over, as a text; and the text with its signature, in an envelope.
  const blob = await made.registry.putBlob(repository, bundle!.signed)
  const annotations = { [signatureAnnotation]: bundle!.signature.toString('base64') }
  await putTagged(made.registry, made.ours, [{ mediaType: simpleSigningType, ...blob, annotations }])
  expect(await verify(made)).toMatchObject({ problem: 'signature_of_other_image' })
  made.registry.manifests.clear()
  const signature = Buffer.from(layer!.annotations![signatureAnnotation]!, 'base64')
  const text = await made.registry.blob(repository, layer!)
  await putBundle(made.registry, made.ours, sealBundle(text, signature, 'any'))
  expect(await verify(made)).toMatchObject({ problem: 'unknown_key' })
})
