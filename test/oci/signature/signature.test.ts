import * as crypto from 'node:crypto'
import { RegistryError } from '@platform/oci/error'
import { parseBundle, serializeBundle } from '@platform/oci/signature/envelope'
import { generateKeyPair, readPublicKey } from '@platform/oci/signature/key'
import { signatureAnnotation, signatureTag, signImage, simpleSigningType } from '@platform/oci/signature/sign'
import { verifyImage } from '@platform/oci/signature/verify'
import { type Manifest, mediaTypes } from '@platform/oci/types'
import { array, assert, asyncProperty, integer, nat, tuple } from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { corpus } from './corpus.ts'
import { secondOpinion } from './second-opinion.ts'
import * as stored from './stored.ts'

const { privatePem, publicPem, put, putBundle, putTagged, repository, startSignatureFixtures, trust } = stored
const atMs = Date.parse('2025-11-22T00:00:00Z')
const p256 = [trust('p256')]

const verify = ({ registry, ours }: stored.SignatureFixtures, keys = p256) =>
  verifyImage(registry, repository, [ours], keys, { atMs })

const cases = corpus.flatMap(([name, expected, store, { layouts = ['referrer', 'tag'] as const, ...options } = {}]) =>
  layouts.map((layout) => ({ name, expected, store, layout, ...options })),
)

test.each(cases)(
  '$layout: $name is $expected, as in sigstore',
  async ({ store, layout, keys = p256, digests, expected }) => {
    const fixtures = await startSignatureFixtures()
    await store(fixtures, layout)
    const images = digests?.(fixtures) ?? [fixtures.ours]
    const verdict = await verifyImage(fixtures.registry, repository, images, keys, { atMs })
    const outcome = verdict.isVerified ? 'verified' : verdict.problem
    const opinion = secondOpinion(fixtures.registry, repository, images, keys, atMs)
    expect({ outcome, opinion }).toEqual({ outcome: expected, opinion: expected === 'verified' })
    if (verdict.isVerified) expect(images).toContain(verdict.digest)
    else expect(verdict.reason).toMatch(/^(No|A|What|sha256:[0-9a-f]{64}) .*\.$/)
  },
)

const changes = array(tuple(nat(5000), integer({ min: 1, max: 255 })), { minLength: 1, maxLength: 3 })

function changeBytes(bytes: Buffer, places: [number, number][]): Buffer {
  const copy = Buffer.from(bytes)
  for (const [place, difference] of places) copy[place % copy.length] = (copy[place % copy.length]! + difference) & 255
  return copy
}

test('does not verify a changed payload or signature', () =>
  assert(
    asyncProperty(changes, changes, async (inPayload, inSignature) => {
      for (const layout of ['referrer', 'tag'] as const) {
        const [one, two] = [await startSignatureFixtures(), await startSignatureFixtures()]
        await put[layout](one, one.ours, 'p256', { payload: (each) => changeBytes(each, inPayload) })
        await put[layout](two, two.ours, 'p256', { signature: (each) => changeBytes(each, inSignature) })
        const verdicts = [await verify(one), await verify(two)]
        expect(verdicts.map(({ isVerified }) => isVerified)).toEqual([isUnchanged(inPayload), false])
      }
    }),
    { seed: 2, numRuns: 150 },
  ))

/** Whether the changes cancel each other out. */
const isUnchanged = (places: [number, number][]): boolean =>
  places.length > 1 && changeBytes(Buffer.alloc(5000), places).every((each) => each === 0)

describe('writes signatures in the format of cosign', () => {
  test('under the tag', async () => {
    const fixtures = await startSignatureFixtures()
    await signImage(fixtures.registry, repository, fixtures.ours, privatePem('p256'), { layout: 'tag' })
    const tag = `${fixtures.ours.replace(':', '-')}.sig`
    const manifest = (await fixtures.registry.manifest(repository, tag))?.content as Manifest
    expect(manifest).toMatchObject({ mediaType: mediaTypes.manifest, config: { mediaType: mediaTypes.config } })
    expect(manifest.layers).toEqual([
      {
        mediaType: 'application/vnd.dev.cosign.simplesigning.v1+json',
        digest: expect.any(String),
        size: expect.any(Number),
        annotations: { 'dev.cosignproject.cosign/signature': expect.stringMatching(/^[A-Za-z0-9+/]+=*$/) },
      },
    ])
    const text = await fixtures.registry.blob(repository, manifest.layers[0]!)
    expect(text.toString()).toBe(
      `{"critical":{"identity":{"docker-reference":"registry.test/team/hello"},"image":{"docker-manifest-digest":"${fixtures.ours}"},"type":"cosign container image signature"},"optional":null}`,
    )
    const config = JSON.parse((await fixtures.registry.blob(repository, manifest.config)).toString())
    expect(config.rootfs.diff_ids).toEqual([manifest.layers[0]?.digest])
  })

  test('as a referrer', async () => {
    const fixtures = await startSignatureFixtures()
    const { digest } = await signImage(fixtures.registry, repository, fixtures.ours, privatePem('p256'))
    const manifest = (await fixtures.registry.manifest(repository, digest))?.content as Manifest
    const type = 'application/vnd.dev.sigstore.bundle.v0.3+json'
    expect(manifest).toEqual({
      schemaVersion: 2,
      mediaType: mediaTypes.manifest,
      artifactType: type,
      config: {
        mediaType: 'application/vnd.oci.empty.v1+json',
        digest: 'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
        size: 2,
      },
      layers: [{ mediaType: type, digest: expect.any(String), size: expect.any(Number) }],
      subject: await fixtures.registry.resolve(repository, fixtures.ours),
      annotations: {
        'org.opencontainers.image.created': expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        'dev.sigstore.bundle.content': 'dsse-envelope',
        'dev.sigstore.bundle.predicateType': 'https://sigstore.dev/cosign/sign/v1',
      },
    })
    const bundle = JSON.parse((await fixtures.registry.blob(repository, manifest.layers[0]!)).toString())
    expect(bundle).toEqual({
      mediaType: type,
      verificationMaterial: { publicKey: { hint: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/) } },
      dsseEnvelope: {
        payload: expect.any(String),
        payloadType: 'application/vnd.in-toto+json',
        signatures: [{ sig: expect.any(String) }],
      },
    })
    expect(JSON.parse(Buffer.from(bundle.dsseEnvelope.payload, 'base64').toString())).toEqual({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ digest: { sha256: fixtures.ours.slice(7) }, annotations: {} }],
      predicateType: 'https://sigstore.dev/cosign/sign/v1',
      predicate: {},
    })
  })
})

describe('signing', () => {
  test('with the same key again keeps one signature under the tag, and those of other keys', async () => {
    const fixtures = await startSignatureFixtures()
    for (const key of ['p256', 'other', 'p256'] as const) {
      await signImage(fixtures.registry, repository, fixtures.ours, privatePem(key), { layout: 'tag' })
    }
    const manifest = (await fixtures.registry.manifest(repository, signatureTag(fixtures.ours)))?.content as Manifest
    expect(manifest.layers).toHaveLength(2)
    for (const key of ['p256', 'other'] as const)
      expect(await verify(fixtures, [trust(key)])).toMatchObject({ by: key })
  })

  test('replaces a signature whose payload was changed', async () => {
    const fixtures = await startSignatureFixtures()
    await put.tag(fixtures, fixtures.ours, 'p256', { payload: () => Buffer.from('other') })
    await signImage(fixtures.registry, repository, fixtures.ours, privatePem('p256'), { layout: 'tag' })
    expect(await verify(fixtures)).toMatchObject({ isVerified: true })
  })

  test('uses SHA-256 under the tag, and the hash of the curve in a bundle', async () => {
    const fixtures = await startSignatureFixtures()
    await signImage(fixtures.registry, repository, fixtures.ours, privatePem('p384'), { layout: 'tag' })
    await signImage(fixtures.registry, repository, fixtures.ours, privatePem('p384'))
    const tagManifest = (await fixtures.registry.manifest(repository, signatureTag(fixtures.ours)))?.content as Manifest
    const text = await fixtures.registry.blob(repository, tagManifest.layers[0]!)
    const signature = Buffer.from(tagManifest.layers[0]!.annotations![signatureAnnotation]!, 'base64')
    expect(crypto.verify('sha256', text, publicPem('p384'), signature)).toBe(true)
    const bundle = [...fixtures.registry.blobs.values()].map(parseBundle).find((each) => each !== undefined)
    expect(crypto.verify('sha384', bundle!.signedBytes, publicPem('p384'), bundle!.signature)).toBe(true)
  })

  test('works with a generated key pair', async () => {
    const fixtures = await startSignatureFixtures()
    const { privateKeyPem, publicKeyPem } = generateKeyPair()
    expect(privateKeyPem).toMatch(/^-----BEGIN PRIVATE KEY-----\n/)
    await signImage(fixtures.registry, repository, fixtures.ours, privateKeyPem)
    expect(await verify(fixtures, [{ name: 'new', pem: publicKeyPem }])).toMatchObject({ isVerified: true })
    expect(generateKeyPair().privateKeyPem).not.toBe(privateKeyPem)
  })

  test.each([
    ['a public key', () => publicPem('p256')],
    ['a text', () => 'no key'],
    ['a weak key', () => privatePem('weak')],
  ])('rejects %s', async (_name, pem) => {
    const { registry, ours } = await startSignatureFixtures()
    expect(() => signImage(registry, repository, ours, pem())).toThrow(TypeError)
  })

  test('rejects a missing image', async () => {
    const { registry } = await startSignatureFixtures()
    const refusal = signImage(registry, repository, `sha256:${'0'.repeat(64)}`, privatePem('p256'))
    await expect(refusal).rejects.toMatchObject({ problem: 'not_found' })
  })
})

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
    await put[layout](fixtures, fixtures.ours, 'p256')
    const blob = vi.spyOn(fixtures.registry, 'blob')
    expect(await verify(fixtures)).toMatchObject({ problem: 'unknown_key' })
    expect(blob).toHaveBeenCalledTimes(50)
  })

  test.each([
    ['a bundle of more than 1 MiB', 'referrer', { bundle: (each: object) => ({ ...each, more: 'x'.repeat(2 ** 20) }) }],
    [
      'a payload of more than 64 KiB',
      'tag',
      { text: (each: Buffer) => Buffer.concat([each, Buffer.alloc(2 ** 16, ' ')]) },
    ],
  ] as const)('%s is rejected', async (_name, layout, changes) => {
    const fixtures = await startSignatureFixtures()
    await put[layout](fixtures, fixtures.ours, 'p256', changes)
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

describe('a registry error', () => {
  const methods = ['referrers', 'manifest', 'blob'] as const
  const kinds = ['unreachable', 'unauthorized', 'refused', 'invalid', 'not_found', 'too_large'] as const
  const rows = methods.flatMap((method) => kinds.map((problem) => ({ method, problem })))

  test.each(rows)(
    '$problem at $method is rethrown, or means not verified if the content is invalid, missing or too large',
    async ({ method, problem }) => {
      const fixtures = await startSignatureFixtures()
      await put.referrer(fixtures, fixtures.ours, 'other')
      await put.tag(fixtures, fixtures.ours, 'other')
      const fail = () => Promise.reject(new RegistryError(problem, problem))
      const verdict = verify({ ...fixtures, registry: { ...fixtures.registry, [method]: fail } })
      if (kinds.indexOf(problem) < 3) await expect(verdict).rejects.toMatchObject({ name: 'RegistryError', problem })
      else expect(await verdict).toMatchObject({ isVerified: false })
    },
  )

  test('at the list of referrers does not hide a signature under the tag', async () => {
    const fixtures = await startSignatureFixtures()
    const failure = new RegistryError('invalid', 'no list')
    const brokenFixtures = { ...fixtures, registry: { ...fixtures.registry, referrers: () => Promise.reject(failure) } }
    expect(await verify(brokenFixtures)).toMatchObject({ problem: 'broken_signature' })
    await put.tag(fixtures, fixtures.ours, 'p256')
    expect(await verify(brokenFixtures)).toMatchObject({ isVerified: true })
  })

  test('of another class is rethrown', async () => {
    const fixtures = await startSignatureFixtures()
    const error = new TypeError('a programming error')
    const registry = { ...fixtures.registry, referrers: () => Promise.reject(error) }
    await expect(verify({ ...fixtures, registry })).rejects.toBe(error)
  })
})

test('rejects a signature that was created for the other layout', async () => {
  const fixtures = await startSignatureFixtures()
  await put.referrer(fixtures, fixtures.ours, 'p256')
  const bundle = [...fixtures.registry.blobs.values()].map(parseBundle).find((each) => each !== undefined)
  await put.tag(fixtures, fixtures.theirs, 'p256', { names: fixtures.ours })
  const tag = (await fixtures.registry.manifest(repository, signatureTag(fixtures.theirs)))?.content as Manifest
  const [layer] = tag.layers
  fixtures.registry.manifests.clear()
  // Stores the payload of the envelope under the tag, and the payload of the tag in an envelope.
  const blob = await fixtures.registry.putBlob(repository, bundle!.signedBytes)
  const annotations = { [signatureAnnotation]: bundle!.signature.toString('base64') }
  await putTagged(fixtures.registry, fixtures.ours, [{ mediaType: simpleSigningType, ...blob, annotations }])
  expect(await verify(fixtures)).toMatchObject({ problem: 'signature_of_other_image' })
  fixtures.registry.manifests.clear()
  const signature = Buffer.from(layer!.annotations![signatureAnnotation]!, 'base64')
  const text = await fixtures.registry.blob(repository, layer!)
  await putBundle(fixtures.registry, fixtures.ours, serializeBundle(text, signature, 'any'))
  expect(await verify(fixtures)).toMatchObject({ problem: 'unknown_key' })
})
