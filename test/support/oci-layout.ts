import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

/** Written without the platform's own code, which is under test. */

const sha256 = (content: Uint8Array | string): string => createHash('sha256').update(content).digest('hex')

interface Descriptor {
  mediaType: string
  digest: string
  size: number
  platform?: { os: string; architecture: string }
}

async function store(folder: string, mediaType: string, content: Buffer): Promise<Descriptor> {
  const hex = sha256(content)
  await writeFile(join(folder, 'blobs/sha256', hex), content)
  return { mediaType, digest: `sha256:${hex}`, size: content.length }
}

const storeJson = (folder: string, mediaType: string, document: object): Promise<Descriptor> =>
  store(folder, mediaType, Buffer.from(JSON.stringify(document)))

async function storeImage(folder: string, architecture: string, labels: Record<string, string>): Promise<Descriptor> {
  // An archive without files consists of two empty blocks.
  const archive = Buffer.alloc(1024)
  const layer = await store(folder, 'application/vnd.oci.image.layer.v1.tar+gzip', gzipSync(archive))
  const config = await storeJson(folder, 'application/vnd.oci.image.config.v1+json', {
    architecture,
    os: 'linux',
    config: { Labels: labels },
    rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(archive)}`] },
  })
  const mediaType = 'application/vnd.oci.image.manifest.v1+json'
  const manifest = { schemaVersion: 2, mediaType, config, layers: [layer] }
  const platform = { os: 'linux', architecture }
  return { ...(await storeJson(folder, mediaType, manifest)), platform }
}

export async function writeLayout(
  folder: string,
  labels: Record<string, string>,
  architectures: readonly string[] = ['amd64'],
): Promise<void> {
  await mkdir(join(folder, 'blobs/sha256'), { recursive: true })
  await writeFile(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  const manifests = await Promise.all(architectures.map((architecture) => storeImage(folder, architecture, labels)))
  const mediaType = 'application/vnd.oci.image.index.v1+json'
  const [onlyManifest] = manifests
  const top =
    manifests.length === 1
      ? onlyManifest
      : await storeJson(folder, mediaType, { schemaVersion: 2, mediaType, manifests })
  const annotations = { 'org.opencontainers.image.ref.name': 'latest' }
  await writeFile(
    join(folder, 'index.json'),
    JSON.stringify({ schemaVersion: 2, manifests: [{ ...top, annotations }] }),
  )
}
