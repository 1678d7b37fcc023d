import { buildImage } from '@platform/oci/build'
import { type RegistryClient, registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { pushImage } from '@platform/oci/push'
import { generateKeyPair } from '@platform/oci/signature/key'
import { signImage, type SignatureLayout, signatureTag } from '@platform/oci/signature/sign'
import { type TrustedKey, verifyImage } from '@platform/oci/signature/verify'
import { mediaTypes } from '@platform/oci/types'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { secondOpinion } from '../oci/signature/second-opinion.ts'
import { put, repository as memoryRepository, startSignatureFixtures, trust } from '../oci/signature/stored.ts'
import { startDockerRegistry } from '../support/docker-registry.ts'
import { amount, seed } from './support/run.ts'

const [trusted, untrusted, restricted] = [generateKeyPair(), generateKeyPair(), generateKeyPair()]
const keys: TrustedKey[] = [
  { name: 'trusted', pem: trusted.publicKeyPem },
  { name: 'restricted', pem: restricted.publicKeyPem, repositories: ['elsewhere'] },
  { name: 'expired', pem: generateKeyPair().publicKeyPem, notAfter: '2020-01-01T00:00:00.000Z' },
]

interface Target {
  client: RegistryClient
  repository: string
  layout: SignatureLayout
}

let registry: Awaited<ReturnType<typeof startDockerRegistry>>
let client: RegistryClient
beforeAll(async () => {
  registry = await startDockerRegistry()
  client = registryClient(registry.host, { transport: plainTransport, credentials: async () => undefined })
})
afterAll(() => registry[Symbol.asyncDispose]())

let imageCount = 0

async function push({ client: to, repository }: Target, tag = 'latest'): Promise<string> {
  const labels = { 'org.platform.module': 'true', 'org.platform.module.id': `m${imageCount++}` }
  const image = await buildImage({ files: [{ path: '/module.json', content: `${imageCount}` }], labels })
  return (await pushImage(to, repository, image, [tag])).digest
}

const sign = ({ client: to, repository, layout }: Target, digest: string, pem = trusted.privateKeyPem) =>
  signImage(to, repository, digest, pem, { layout })

async function copySignature(
  { repository, layout }: Target,
  source: string,
  destination: { repository: string; digest: string },
  change: (bytes: Buffer) => Buffer = (bytes) => bytes,
): Promise<void> {
  const [referrer] = layout === 'referrer' ? await client.referrers(repository, source) : []
  const { content } = (await client.manifest(repository, referrer?.digest ?? signatureTag(source))) ?? {}
  if (content === undefined || !('layers' in content)) throw new Error('The source has no signature.')
  const layers = []
  for (const layer of content.layers) {
    const blob = await client.putBlob(destination.repository, change(await client.blob(repository, layer)))
    layers.push({ ...layer, ...blob })
  }
  const { config, subject } = content
  if (config !== undefined) await client.putBlob(destination.repository, await client.blob(repository, config))
  const manifest = { ...content, layers }
  if (subject !== undefined) {
    const changedSubject = { ...subject, digest: destination.digest }
    await client.putReferrer(destination.repository, { ...manifest, subject: changedSubject })
    return
  }
  const bytes = Buffer.from(JSON.stringify(manifest))
  await client.putManifest(destination.repository, signatureTag(destination.digest), bytes, mediaTypes.manifest)
}

const copyToLatest =
  (change: (bytes: Buffer, from: string, to: string) => Buffer) =>
  async (target: Target): Promise<void> => {
    const signedDigest = await push(target, 'signed')
    await sign(target, signedDigest)
    const digest = await push(target)
    await copySignature(target, signedDigest, { ...target, digest }, (bytes) => change(bytes, signedDigest, digest))
  }

function flipBit(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  copy[copy.length >> 1] = (copy[copy.length >> 1] ?? 0) ^ 1
  return copy
}

function replaceDigest(bytes: Buffer, from: string, to: string): Buffer {
  const replace = (text: string): string => text.replaceAll(from.slice('sha256:'.length), to.slice('sha256:'.length))
  const replacePayload = (_: string, payload: string): string =>
    `"payload":"${Buffer.from(replace(Buffer.from(payload, 'base64').toString())).toString('base64')}"`
  return Buffer.from(replace(bytes.toString()).replace(/"payload":"([^"]+)"/, replacePayload))
}

/** Name → action after which the tag `latest` refers to an image without a valid signature. */
const attacks: readonly [string, (target: Target) => Promise<unknown>][] = [
  ['without a signature', (target) => push(target)],
  [
    'pushed after the signed one under the same tag',
    async (target) => {
      await sign(target, await push(target))
      await push(target)
    },
  ],
  ['signed with an untrusted key', async (target) => sign(target, await push(target), untrusted.privateKeyPem)],
  [
    'signed with a key for other repositories',
    async (target) => sign(target, await push(target), restricted.privateKeyPem),
  ],
  ['with the signature of another image', copyToLatest((bytes) => bytes)],
  [
    'with a signature from another repository',
    async (target) => {
      const otherTarget = { ...target, repository: `${target.repository}-other` }
      const signedDigest = await push(otherTarget)
      await sign(otherTarget, signedDigest)
      await copySignature(otherTarget, signedDigest, { ...target, digest: await push(target) })
    },
  ],
  ['with one bit of the signature changed', copyToLatest(flipBit)],
  ['with the digest in the signature replaced', copyToLatest(replaceDigest)],
  ['with half of a signature', copyToLatest((bytes) => bytes.subarray(0, bytes.length / 2))],
  ['with an empty document as signature', copyToLatest(() => Buffer.from('{}'))],
]

async function isLatestVerified(repository: string): Promise<boolean> {
  const digest = (await client.resolve(repository, 'latest'))?.digest ?? ''
  return (await verifyImage(client, repository, [digest], keys, { atMs: Date.now() })).isVerified
}

const layouts: readonly SignatureLayout[] = ['referrer', 'tag']

test.each(layouts)('a real registry: a signed image is verified (%s)', async (layout) => {
  const target = { client, layout, repository: `team/signed-${layout}` }
  await sign(target, await push(target))
  expect(await isLatestVerified(target.repository)).toBe(true)
})

test.each(layouts.flatMap((layout) => attacks.map(([name, attack], index) => ({ layout, name, attack, index }))))(
  'a real registry: an image $name is not verified ($layout)',
  async ({ layout, attack, index }) => {
    const target = { client, layout, repository: `team/attack-${layout}-${index}` }
    await attack(target)
    expect(await isLatestVerified(target.repository)).toBe(false)
  },
)

test('sigstore verifies every changed bundle that the platform verifies', async () => {
  const atMs = Date.parse('2025-11-22T00:00:00Z')
  const p256 = [trust('p256')]
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 })
  const property = fc.asyncProperty(changes, async (byteChanges) => {
    const fixtures = await startSignatureFixtures()
    const bundle = (content: object): Buffer => {
      const bytes = Buffer.from(JSON.stringify(content))
      for (const [position, value] of byteChanges) bytes[position % bytes.length] = value
      return bytes
    }
    await put.referrer(fixtures, fixtures.ours, 'p256', { bundle })
    const { isVerified } = await verifyImage(fixtures.registry, memoryRepository, [fixtures.ours], p256, { atMs })
    if (isVerified) expect(secondOpinion(fixtures.registry, memoryRepository, [fixtures.ours], p256, atMs)).toBe(true)
  })
  await fc.assert(property, { numRuns: amount(5000, 20), seed })
})
