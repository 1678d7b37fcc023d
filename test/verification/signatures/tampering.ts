import { type RegistryClient, registryClient } from '@platform/oci/client'
import { buildImage } from '@platform/oci/build'
import { plainTransport } from '@platform/oci/plain-transport'
import { pushImage } from '@platform/oci/push'
import { generateKeyPair } from '@platform/oci/signature/key'
import { signImage, type SignatureLayout, signatureTag } from '@platform/oci/signature/sign'
import { type TrustedKey, verifyImage } from '@platform/oci/signature/verify'
import { mediaTypes } from '@platform/oci/types'

/** Images in a real registry, and what somebody does to them who may push there but has no trusted key. */

const atMs = Date.now()
const [trusted, stranger, scoped] = [generateKeyPair(), generateKeyPair(), generateKeyPair()]
const keys: TrustedKey[] = [
  { name: 'trusted', pem: trusted.publicKeyPem },
  { name: 'scoped', pem: scoped.publicKeyPem, repositories: ['elsewhere'] },
  { name: 'over', pem: generateKeyPair().publicKeyPem, notAfter: '2020-01-01T00:00:00.000Z' },
]

interface World {
  client: RegistryClient
  /** A repository that nobody else uses. */
  repository: string
  layout: SignatureLayout
}

let images = 0

async function push({ client, repository }: World, tag = 'latest'): Promise<string> {
  const labels = { 'org.platform.module': 'true', 'org.platform.module.id': `m${images++}` }
  const built = await buildImage({ files: [{ path: '/module.json', content: `${images}` }], labels })
  return (await pushImage(client, repository, built, [tag])).digest
}

const sign = ({ client, repository, layout }: World, digest: string, pem = trusted.privateKeyPem, where = repository) =>
  signImage(client, where, digest, pem, { layout })

/** Copies the manifest of a signature to where another image's would be, with other bytes where they are changed. */
async function copySignature(
  { client, repository, layout }: World,
  from: string,
  to: { repository: string; digest: string },
  change: (bytes: Buffer) => Buffer = (bytes) => bytes,
): Promise<void> {
  const [referrer] = layout === 'referrer' ? await client.referrers(repository, from) : []
  const found = await client.manifest(repository, referrer?.digest ?? signatureTag(from))
  if (found === undefined || !('layers' in found.content)) throw new Error('There is no signature to be copied.')
  const { content } = found
  const layers = []
  for (const layer of content.layers) {
    const blob = await client.putBlob(to.repository, change(await client.blob(repository, layer)))
    layers.push({ ...layer, ...blob })
  }
  const { config, subject } = content
  if (config !== undefined) await client.putBlob(to.repository, await client.blob(repository, config))
  const manifest = { ...content, layers }
  if (subject !== undefined)
    await client.putReferrer(to.repository, { ...manifest, subject: { ...subject, digest: to.digest } })
  else {
    const bytes = Buffer.from(JSON.stringify(manifest))
    await client.putManifest(to.repository, signatureTag(to.digest), bytes, mediaTypes.manifest)
  }
}

/** Each leaves the tag `latest` of the repository with what is not signed by whoever may. */
const tamperings: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
  'nobody has signed it': (world) => push(world),
  'the tag leads to another image now': async (world) => {
    await sign(world, await push(world))
    await push(world)
  },
  'a stranger has signed it': async (world) => sign(world, await push(world), stranger.privateKeyPem),
  'a key has signed it that is trusted elsewhere': async (world) =>
    sign(world, await push(world), scoped.privateKeyPem),
  'the signature of the image before was copied': async (world) => {
    const before = await push(world)
    await sign(world, before)
    const digest = await push(world)
    await copySignature(world, before, { ...world, digest })
  },
  'the signature of another repository was copied': async (world) => {
    const other = { ...world, repository: `${world.repository}-other` }
    const signed = await push(other)
    await sign(other, signed)
    const digest = await push(world)
    await copySignature(other, signed, { ...world, digest })
  },
  'one bit of the signed text was changed': async (world) => {
    const before = await push(world, 'before')
    await sign(world, before)
    const digest = await push(world)
    await copySignature(world, before, { ...world, digest }, flipped)
  },
  'the name of the image was changed in the signed text': async (world) => {
    const before = await push(world, 'before')
    await sign(world, before)
    const digest = await push(world)
    await copySignature(world, before, { ...world, digest }, (bytes) => renamed(bytes, before, digest))
  },
  'the signature was cut off': async (world) => {
    const before = await push(world, 'before')
    await sign(world, before)
    const digest = await push(world)
    await copySignature(world, before, { ...world, digest }, (bytes) => bytes.subarray(0, bytes.length / 2))
  },
  'what lies beside it is no signature': async (world) => {
    const before = await push(world, 'before')
    await sign(world, before)
    const digest = await push(world)
    await copySignature(world, before, { ...world, digest }, () => Buffer.from('{}'))
  },
}

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  copy[copy.length >> 1] = (copy[copy.length >> 1] ?? 0) ^ 1
  return copy
}

/** In the text as it stands, and in that which a bundle holds in Base64. */
function renamed(bytes: Buffer, from: string, to: string): Buffer {
  const [hash, other] = [from, to].map((digest) => digest.slice('sha256:'.length))
  const text = bytes.toString().replaceAll(hash ?? '', other ?? '')
  return Buffer.from(
    text.replace(/"payload":"([^"]+)"/, (_, payload: string) => {
      const inside = Buffer.from(payload, 'base64')
        .toString()
        .replaceAll(hash ?? '', other ?? '')
      return `"payload":"${Buffer.from(inside).toString('base64')}"`
    }),
  )
}

/** What was seen of images that were tampered with. */
export interface Tampered {
  cases: number
  /** Cases in which an image that is well signed is not verified: nothing is shown by the others. */
  withoutControl: number
  verified: string[]
}

const layouts: readonly SignatureLayout[] = ['referrer', 'tag']

/** Tampers in every way, with both layouts of signatures, and looks what becomes of `latest`. */
export async function tamper(host: string): Promise<Tampered> {
  const client = registryClient(host, { transport: plainTransport, credentials: async () => undefined })
  const seen: Tampered = { cases: 0, withoutControl: 0, verified: [] }
  const isVerified = async ({ repository }: World): Promise<boolean> => {
    const digest = (await client.resolve(repository, 'latest'))?.digest ?? ''
    return (await verifyImage(client, repository, [digest], keys, { atMs })).isVerified
  }
  for (const layout of layouts) {
    const good = { client, layout, repository: `team/good-${layout}` }
    await sign(good, await push(good))
    if (!(await isVerified(good))) seen.withoutControl++
    for (const [index, [name, make]] of Object.entries(tamperings).entries()) {
      const world = { client, layout, repository: `team/case-${layout}-${index}` }
      await make(world)
      seen.cases++
      if (await isVerified(world)) seen.verified.push(`${layout}: ${name}`)
    }
  }
  return seen
}
