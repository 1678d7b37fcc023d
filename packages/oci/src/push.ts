import type { RegistryClient } from './client.ts'
import type { BuiltImage } from './build.ts'
import { RegistryError } from './error.ts'
import { maxLayerBytes } from './layer.ts'
import { reserveMemory } from './memory-budget.ts'
import type { BuiltLayer } from './pack.ts'
import { type Descriptor, type Image, mediaTypes } from './types.ts'

/**
 * Pushes an image: first the missing blobs, then the manifest under each tag, or under its digest without tags. Returns
 * the descriptor of the manifest. Throws `RegistryError`.
 */
export async function pushImage(
  client: RegistryClient,
  repository: string,
  image: BuiltImage,
  tags: readonly string[],
): Promise<Descriptor> {
  for (const layer of image.layers) await pushLayer(client, repository, layer)
  await client.putBlob(repository, image.config)
  for (const tag of tags.slice(1)) await client.putManifest(repository, tag, image.manifest, mediaTypes.manifest)
  return client.putManifest(repository, tags[0] ?? image.digest, image.manifest, mediaTypes.manifest)
}

async function pushLayer(client: RegistryClient, repository: string, layer: BuiltLayer): Promise<void> {
  if ('bytes' in layer) {
    await client.putBlob(repository, layer.bytes)
    return
  }
  if (await client.hasBlob(repository, layer.descriptor.digest)) return
  const bytes = await client.blob(layer.repository, layer.descriptor, maxLayerBytes)
  await client.putBlob(repository, bytes, { mountFrom: layer.repository })
}

/**
 * Copies a single-platform image byte for byte, so that it keeps its digest: first the missing blobs, then the
 * manifest. Does not copy signatures. Returns the descriptor of the manifest. Throws `RegistryError`.
 */
export async function replicateImage(
  from: RegistryClient,
  image: Image,
  to: RegistryClient,
  repository: string,
  tag: string,
): Promise<Descriptor> {
  const manifest = await from.manifest(image.repository, image.digest)
  if (manifest === undefined) {
    throw new RegistryError('not_found', `${image.repository}@${image.digest} is no longer in ${from.registry}.`)
  }
  const mount = from.registry === to.registry ? { mountFrom: image.repository } : {}
  for (const blob of [image.manifest.config, ...image.manifest.layers]) {
    if (await to.hasBlob(repository, blob.digest)) continue
    using _ = await reserveMemory(blob.size)
    await to.putBlob(repository, await from.blob(image.repository, blob, maxLayerBytes), mount)
  }
  const descriptor = await to.putManifest(repository, tag, manifest.bytes, manifest.descriptor.mediaType)
  if (descriptor.digest !== image.digest) {
    throw new RegistryError('invalid', `${to.registry} stored ${image.digest} as ${descriptor.digest}.`)
  }
  return descriptor
}
