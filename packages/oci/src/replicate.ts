import type { RegistryClient } from './client.ts'
import { RegistryError } from './error.ts'
import { maxLayerBytes } from './layer.ts'
import { reserveMemory } from './memory-budget.ts'
import type { Descriptor, Image } from './types.ts'

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
  const sent = await to.putManifest(repository, tag, manifest.bytes, manifest.descriptor.mediaType)
  if (sent.digest !== image.digest) {
    throw new RegistryError('invalid', `${to.registry} stored ${image.digest} as ${sent.digest}.`)
  }
  return sent
}
