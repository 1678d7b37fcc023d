import type { BuiltImage } from './build.ts'
import type { RegistryClient } from './client.ts'
import { RegistryError } from './error.ts'
import { maxLayerBytes } from './layer.ts'
import { addToIndex, withTag, writeBlob } from './layout-folder.ts'
import { bundleType } from './signature/envelope.ts'
import { signatureTag } from './signature/sign.ts'
import { type Descriptor, mediaTypes } from './types.ts'

/** Images in a folder (OCI image layout 1.0), for transfer without a network. */

/** Adds a built image to a layout. Throws `TypeError` if one of its layers is only in a registry. */
export async function exportLayout(image: BuiltImage, folder: string, tags: readonly string[] = []): Promise<void> {
  for (const layer of image.layers) {
    if (!('bytes' in layer)) throw new TypeError('The base of this image is in a registry: push it, then save it.')
    await writeBlob(folder, layer.bytes)
  }
  await writeBlob(folder, image.config)
  await writeBlob(folder, image.manifest)
  const descriptor = { mediaType: mediaTypes.manifest, digest: image.digest, size: image.manifest.length }
  const entries = tags.length > 0 ? tags.map((tag) => withTag(descriptor, tag)) : [descriptor]
  await addToIndex(folder, entries)
}

/**
 * Saves a reference to a layout: the image, or the index with the images of all platforms, and their signatures. Throws
 * `RegistryError`.
 */
export async function saveLayout(
  client: RegistryClient,
  repository: string,
  reference: string,
  folder: string,
): Promise<void> {
  const tag = reference.includes(':') ? undefined : reference
  const entries = await save(client, repository, reference, folder, tag)
  if (entries.length === 0) throw new RegistryError('not_found', `There is no ${reference} in ${repository}.`)
  await addToIndex(folder, entries)
}

/** Returns the index entries: the manifest, then signatures. Returns none if the manifest does not exist. */
async function save(
  client: RegistryClient,
  repository: string,
  reference: string,
  folder: string,
  tag?: string,
): Promise<Descriptor[]> {
  const manifest = await client.manifest(repository, reference)
  if (manifest === undefined) return []
  const { content, bytes, descriptor } = manifest
  const signatures: Descriptor[] = []
  if ('manifests' in content) {
    for (const { digest } of content.manifests) {
      // The first entry is the image itself, which the saved index already lists.
      signatures.push(...(await save(client, repository, digest, folder)).slice(1))
    }
  } else {
    for (const blob of [content.config, ...content.layers]) {
      await writeBlob(folder, await client.blob(repository, blob, maxLayerBytes))
    }
  }
  await writeBlob(folder, bytes)
  const isSignature = 'subject' in content || tag?.endsWith('.sig') === true
  if (!isSignature) signatures.push(...(await saveSignatures(client, repository, descriptor.digest, folder)))
  return [withTag(descriptor, tag), ...signatures]
}

async function saveSignatures(
  client: RegistryClient,
  repository: string,
  digest: string,
  folder: string,
): Promise<Descriptor[]> {
  const savedSignatures = await save(client, repository, signatureTag(digest), folder, signatureTag(digest))
  for (const referrer of await client.referrers(repository, digest, bundleType)) {
    savedSignatures.push(...(await save(client, repository, referrer.digest, folder)))
  }
  return savedSignatures
}
