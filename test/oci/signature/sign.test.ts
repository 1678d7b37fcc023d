import * as crypto from 'node:crypto'
import { openBundle } from '@platform/oci/signature/envelope'
import { generateKeyPair } from '@platform/oci/signature/key'
import { signatureAnnotation, signatureTag, signImage } from '@platform/oci/signature/sign'
import { verifyImage } from '@platform/oci/signature/verify'
import { type Manifest, mediaTypes } from '@platform/oci/types'
import { describe, expect, test } from 'vitest'
import {
  privatePem,
  publicPem,
  put,
  repository,
  trust,
  type SignatureFixtures,
  startSignatureFixtures,
} from './stored.ts'

const atMs = Date.parse('2025-11-22T00:00:00Z')
const p256 = [trust('p256')]

const verify = ({ registry, ours }: SignatureFixtures, keys = p256) =>
  verifyImage(registry, repository, [ours], keys, { atMs })

describe('writes signatures in the format of cosign', () => {
  test('under the tag', async () => {
    const fixtures = await startSignatureFixtures()
    await signImage(fixtures.registry, repository, fixtures.ours, privatePem('p256'), { layout: 'tag' })
    const found = await fixtures.registry.manifest(repository, `${fixtures.ours.replace(':', '-')}.sig`)
    const manifest = found?.content as Manifest
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
    const tag = (await fixtures.registry.manifest(repository, signatureTag(fixtures.ours)))?.content as Manifest
    const text = await fixtures.registry.blob(repository, tag.layers[0]!)
    const signature = Buffer.from(tag.layers[0]!.annotations![signatureAnnotation]!, 'base64')
    expect(crypto.verify('sha256', text, publicPem('p384'), signature)).toBe(true)
    const bundle = [...fixtures.registry.blobs.values()].map(openBundle).find((each) => each !== undefined)
    expect(crypto.verify('sha384', bundle!.signed, publicPem('p384'), bundle!.signature)).toBe(true)
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
