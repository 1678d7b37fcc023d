import type { RegistryClient } from './client.ts'
import type { BuiltImage } from './build.ts'
import { maxLayerBytes } from './layer.ts'
import type { BuiltLayer } from './pack.ts'
import { type Descriptor, mediaTypes } from './types.ts'

/**
 * Pushes an image: first the missing blobs, then the manifest under each tag, or under its digest without tags. Returns
 * the descriptor of the manifest. Throws `RegistryError`.
 */
export async function pushImage(
  client: RegistryClient,
  repository: string,
  built: BuiltImage,
  tags: readonly string[],
): Promise<Descriptor> {
  for (const layer of built.layers) await pushLayer(client, repository, layer)
  await client.putBlob(repository, built.config)
  for (const tag of tags.slice(1)) await client.putManifest(repository, tag, built.manifest, mediaTypes.manifest)
  return client.putManifest(repository, tags[0] ?? built.digest, built.manifest, mediaTypes.manifest)
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
