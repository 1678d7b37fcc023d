import { execFile } from 'node:child_process'
import { realpath } from 'node:fs/promises'
import { promisify } from 'node:util'
import * as z from 'zod'
import { digestOf } from './digest.ts'
import { type Platform, thisPlatform } from './image.ts'
import { layersOf } from './layer.ts'
import { type BuiltLayer, type FileToPack, packLayer } from './pack.ts'
import { type Descriptor, type Image, type ImageConfig, type Manifest, mediaTypes } from './types.ts'

export interface ImageToBuild {
  /** The topmost layer; none where there are no files. */
  files: readonly FileToPack[]
  /** How it is started; what is not said is taken from the base. */
  config?: Omit<ImageConfig['config'], 'Labels'>
  /** Beside those of the base. */
  labels?: Readonly<Record<string, string>>
  /** An image of the registry that this one is pushed to: its layers come below. */
  base?: Image
  /** Layers between the base's and the files', lowest first. */
  layers?: readonly BuiltLayer[]
  /** That of the base, or this machine's. */
  platform?: Platform
  /** ISO 8601. The beginning of 1970 by default: a time would make another image of the same files. */
  created?: string
}

/** An image of one platform, to be pushed or written to a folder. */
export interface BuiltImage {
  /** Of the manifest. */
  digest: string
  manifest: Buffer
  config: Buffer
  /** Lowest first. */
  layers: readonly BuiltLayer[]
}

/** Builds an image without a daemon. The same input gives the same digest (see `packLayer`). No requests. */
export async function buildImage(input: ImageToBuild): Promise<BuiltImage> {
  const { files, base, created = '1970-01-01T00:00:00Z' } = input
  const top = files.length > 0 ? [await packLayer(files)] : []
  const layers = [...(base ? baseLayers(base) : []), ...(input.layers ?? []), ...top]
  const { os, architecture } = input.platform ?? base?.config ?? thisPlatform()
  const labels = sorted({ ...base?.labels, ...input.labels })
  const config = json({
    architecture,
    os,
    created,
    config: sorted({ ...base?.config.config, ...input.config, Labels: labels }),
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(() => ({ created, created_by: 'platform' })),
  } satisfies ImageConfig & { history: unknown })
  const manifest = json({
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config: { mediaType: mediaTypes.config, digest: digestOf(config), size: config.length },
    layers: layers.map(({ descriptor: { mediaType, digest, size } }) => ({ mediaType, digest, size })),
  } satisfies Manifest)
  return { digest: digestOf(manifest), manifest, config, layers }
}

const json = (content: unknown): Buffer => Buffer.from(JSON.stringify(content))

const sorted = <Value>(record: Readonly<Record<string, Value>>): Record<string, Value> =>
  Object.fromEntries(Object.entries(record).toSorted(([left], [right]) => (left < right ? -1 : 1)))

/** The words of Docker for the same layers, which a manifest of OCI does not know. */
const ociTypes: Record<string, string> = {
  'application/vnd.docker.image.rootfs.diff.tar': 'application/vnd.oci.image.layer.v1.tar',
  'application/vnd.docker.image.rootfs.diff.tar.gzip': mediaTypes.layer,
}

const baseLayers = (base: Image): BuiltLayer[] =>
  layersOf(base).map(({ descriptor, diffId }) => {
    const mediaType = ociTypes[descriptor.mediaType] ?? descriptor.mediaType
    return { descriptor: { ...descriptor, mediaType } satisfies Descriptor, diffId, repository: base.repository }
  })

const nodePath = '/usr/local/bin/node'

/**
 * The running Node.js and the libraries it needs, as a layer, for images that bring their own: some 50 MB and a few
 * seconds. It is for this machine's processors, and of Linux only. The program is `/usr/local/bin/node`.
 */
export async function nodeLayer(): Promise<BuiltLayer & { bytes: Buffer }> {
  if (process.platform !== 'linux') throw new TypeError('Only the Node.js of a Linux machine can be put into an image.')
  // A process of its own: this one may have loaded libraries for other things.
  const script = 'process.report.excludeNetwork = true; JSON.stringify(process.report.getReport().sharedObjects)'
  const { stdout } = await promisify(execFile)(process.execPath, ['-p', script], { env: {} })
  const libraries = z
    .array(z.string())
    .parse(JSON.parse(stdout))
    .filter((path) => path.startsWith('/'))
  const sources = libraries.map(async (path) => ({ path, source: await realpath(path), mode: 0o755 }))
  return packLayer([...(await Promise.all(sources)), { path: nodePath, source: process.execPath, mode: 0o755 }])
}
