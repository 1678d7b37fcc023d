import { buffer } from 'node:stream/consumers'
import * as z from 'zod'
import { defaultUnpackLimits } from './layer-limits.ts'
import type { FoundManifest, RegistryClient } from './client.ts'
import { RegistryError } from './error.ts'
import { normalizePath, isBelow, type Whiteout, whiteoutOf } from './image-path.ts'
import { layerEntries, type LayerEntry, layersOf } from './layer.ts'
import { type Descriptor, type Image, type ImageConfig, type Index, type Manifest, mediaTypes } from './types.ts'

export interface Platform {
  os: string
  architecture: string
}

/** Returns Linux on the architecture of this machine, with the names of the OCI specification, such as `amd64`. */
export const currentPlatform = (): Platform => ({
  os: 'linux',
  architecture: process.arch === 'x64' ? 'amd64' : process.arch,
})

const strings = z.array(z.string()).max(1000)

/** Drops null members, which some builders write for absent values. */
const withoutNulls = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null))
    : value

const RuntimeConfig = z.object({
  Env: strings.exactOptional(),
  Entrypoint: strings.exactOptional(),
  Cmd: strings.exactOptional(),
  WorkingDir: z.string().exactOptional(),
  User: z.string().exactOptional(),
  Labels: z.record(z.string(), z.string()).exactOptional(),
})

const Config = z.object({
  architecture: z.string(),
  os: z.string(),
  created: z.string().exactOptional(),
  config: z.preprocess((value) => withoutNulls(value ?? {}), RuntimeConfig),
  rootfs: z.object({ type: z.literal('layers'), diff_ids: z.array(z.string()) }),
})

const configTypes = new Set<string>([mediaTypes.config, 'application/vnd.docker.container.image.v1+json'])
const maxConfigBytes = 2 ** 20
const maxLayers = 256

/**
 * Reads the image of one platform; undefined if the reference does not exist. An image that is not part of an index is
 * accepted for any platform; its configuration contains the platform. Throws `RegistryError` (`invalid`) for other
 * content and for an index without the platform.
 */
export async function readImage(
  client: RegistryClient,
  repository: string,
  reference: string,
  platform: Platform = currentPlatform(),
): Promise<Image | undefined> {
  const top = await client.manifest(repository, reference)
  if (top === undefined) return undefined
  const selectedManifest = isIndex(top.content) ? await memberOf(client, repository, top.content, platform) : top
  const manifest = selectedManifest.content
  if (isIndex(manifest) || !configTypes.has(manifest.config.mediaType) || manifest.layers.length > maxLayers) {
    throw new RegistryError('invalid', `${repository}@${selectedManifest.descriptor.digest} is not an image.`)
  }
  const config = parseConfig(await client.blob(repository, manifest.config, maxConfigBytes))
  if (config?.rootfs.diff_ids.length !== manifest.layers.length) {
    throw new RegistryError(
      'invalid',
      `The configuration of ${repository}@${selectedManifest.descriptor.digest} is broken.`,
    )
  }
  const { digest } = selectedManifest.descriptor
  const labels = config.config.Labels ?? {}
  return { repository, digest, topDigest: top.descriptor.digest, manifest, config, labels }
}

const isIndex = (content: Manifest | Index): content is Index => 'manifests' in content

/** Attestations never match: their platform is `unknown`. */
async function memberOf(
  client: RegistryClient,
  repository: string,
  index: Index,
  { os, architecture }: Platform,
): Promise<FoundManifest> {
  const isMatch = ({ platform }: Descriptor) => platform?.os === os && platform.architecture === architecture
  const member = index.manifests.find(isMatch)
  const image = member && (await client.manifest(repository, member.digest))
  if (!image) throw new RegistryError('invalid', `${repository} has no image for ${os}/${architecture}.`)
  return image
}

function parseConfig(bytes: Buffer): ImageConfig | undefined {
  try {
    return Config.safeParse(withoutNulls(JSON.parse(bytes.toString()))).data
  } catch {
    return undefined
  }
}

/**
 * Reads the first existing file of several paths, from the topmost layer that contains any of them; undefined if there
 * is none. Does not unpack the image: reads layers from the top down and stops when it finds a file. Ignores links.
 * Throws `RegistryError` (`too_large` for a file of more than `maxBytes`).
 */
export async function readFile(
  client: RegistryClient,
  image: Image,
  paths: readonly string[],
  maxBytes: number,
): Promise<Buffer | undefined> {
  let remainingPaths = paths.map(normalizePath)
  const limits = defaultUnpackLimits()
  for (const layer of layersOf(image).toReversed()) {
    const contents = new Map<string, Buffer>()
    const hiddenPaths = new Set<string>()
    for await (const entry of layerEntries(client, image.repository, layer, limits)) {
      const whiteout = whiteoutOf(entry.path)
      for (const path of remainingPaths) {
        if (whiteout !== undefined ? isHidden(path, whiteout) : isReplaced(path, entry)) hiddenPaths.add(path)
        if (whiteout === undefined && isReplaced(path, entry)) contents.delete(path)
      }
      if (entry.kind === 'file' && remainingPaths.includes(entry.path))
        contents.set(entry.path, await contentOf(entry, maxBytes))
    }
    const firstPath = remainingPaths.find((path) => contents.has(path))
    if (firstPath !== undefined) return contents.get(firstPath)
    remainingPaths = remainingPaths.filter((path) => !hiddenPaths.has(path))
    if (remainingPaths.length === 0) return undefined
  }
  return undefined
}

const isHidden = (path: string, whiteout: Whiteout): boolean =>
  (whiteout.kind === 'path' && (path === whiteout.path || isBelow(path, whiteout.path))) ||
  (whiteout.kind === 'below' && isBelow(path, whiteout.path))

const isReplaced = (path: string, entry: LayerEntry): boolean =>
  path === entry.path || (entry.kind !== 'directory' && isBelow(path, entry.path))

async function contentOf({ path, size, content }: LayerEntry, maxBytes: number): Promise<Buffer> {
  if (size > maxBytes) throw new RegistryError('too_large', `/${path} has more than ${maxBytes} bytes.`)
  return buffer(content)
}
