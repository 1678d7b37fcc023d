import { execFile } from 'node:child_process'
import { realpath } from 'node:fs/promises'
import { promisify } from 'node:util'
import * as z from 'zod'
import { digestOf } from './digest.ts'
import { currentPlatform, type Platform } from './image.ts'
import { layersOf } from './layer.ts'
import { type BuiltLayer, type FileToPack, packLayer } from './pack.ts'
import { type Descriptor, type Image, type ImageConfig, type Manifest, mediaTypes } from './types.ts'

export interface ImageToBuild {
  /** Content of the topmost layer; without files there is no such layer. */
  files: readonly FileToPack[]
  /** Runtime configuration. Unset members are inherited from the base. */
  config?: Omit<ImageConfig['config'], 'Labels'>
  /** Added to the labels of the base. Replaces labels of the same name. */
  labels?: Readonly<Record<string, string>>
  /** Base image, in the registry that the image is pushed to. Its layers are the lowest. */
  base?: Image
  /** Layers between those of the base and of `files`, lowest first. */
  layers?: readonly BuiltLayer[]
  /** Defaults to the platform of the base, or of this machine if there is no base. */
  platform?: Platform
  /** ISO 8601. Defaults to 1970-01-01T00:00:00Z, so that the same files give the same image. */
  created?: string
}

/** A single-platform image to push or to write to an image layout. */
export interface BuiltImage {
  /** Digest of the manifest. */
  digest: string
  manifest: Buffer
  config: Buffer
  /** Lowest first. */
  layers: readonly BuiltLayer[]
}

/** Builds an image without a daemon or network requests. The same input gives the same digest (see `packLayer`). */
export async function buildImage(input: ImageToBuild): Promise<BuiltImage> {
  const { files, base, created = '1970-01-01T00:00:00Z' } = input
  const top = files.length > 0 ? [await packLayer(files)] : []
  const layers = [...(base ? baseLayers(base) : []), ...(input.layers ?? []), ...top]
  const { os, architecture } = input.platform ?? base?.config ?? currentPlatform()
  const labels = sortMembers({ ...base?.labels, ...input.labels })
  const config = encodeJson({
    architecture,
    os,
    created,
    config: sortMembers({ ...base?.config.config, ...input.config, Labels: labels }),
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(() => ({ created, created_by: 'platform' })),
  } satisfies ImageConfig & { history: unknown })
  const manifest = encodeJson({
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config: { mediaType: mediaTypes.config, digest: digestOf(config), size: config.length },
    layers: layers.map(({ descriptor: { mediaType, digest, size } }) => ({ mediaType, digest, size })),
  } satisfies Manifest)
  return { digest: digestOf(manifest), manifest, config, layers }
}

const encodeJson = (content: unknown): Buffer => Buffer.from(JSON.stringify(content))

const sortMembers = <Value>(record: Readonly<Record<string, Value>>): Record<string, Value> =>
  Object.fromEntries(Object.entries(record).toSorted(([left], [right]) => (left < right ? -1 : 1)))

/** OCI media types of Docker layers. OCI manifests do not define the Docker types. */
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
 * Builds a layer with the running Node.js, as `/usr/local/bin/node`, and its shared libraries, for images without
 * Node.js in their base. The layer requires the CPU architecture of this machine. Throws `TypeError` on systems other
 * than Linux.
 */
export async function buildNodeLayer(): Promise<BuiltLayer & { bytes: Buffer }> {
  if (process.platform !== 'linux') throw new TypeError('Only the Node.js of a Linux machine can be put into an image.')
  // Uses a separate process, because this one may have loaded further libraries.
  const script = 'process.report.excludeNetwork = true; JSON.stringify(process.report.getReport().sharedObjects)'
  const { stdout } = await promisify(execFile)(process.execPath, ['-p', script], { env: {} })
  const libraries = z
    .array(z.string())
    .parse(JSON.parse(stdout))
    .filter((path) => path.startsWith('/'))
  const libraryFiles = libraries.map(async (path) => ({ path, source: await realpath(path), mode: 0o755 }))
  return packLayer([...(await Promise.all(libraryFiles)), { path: nodePath, source: process.execPath, mode: 0o755 }])
}
