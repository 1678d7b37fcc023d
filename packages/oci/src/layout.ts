import type { BuiltImage } from './build.ts'
import type { RegistryClient } from './client.ts'
import { RegistryError } from './error.ts'
import { maxLayerBytes } from './layer.ts'
import { addToIndex, named, writeBlob } from './layout-folder.ts'
import { bundleType } from './signature/envelope.ts'
import { signatureTag } from './signature/sign.ts'
import { type Descriptor, mediaTypes } from './types.ts'

/** Images in a folder (OCI image layout 1.0), to be carried where no network leads. */

/** Writes an image into a folder, beside those that are there. Throws `TypeError` where its base is in a registry only. */
export async function exportLayout(built: BuiltImage, folder: string, tags: readonly string[] = []): Promise<void> {
  for (const layer of built.layers) {
    if (!('bytes' in layer)) throw new TypeError('The base of this image is in a registry: push it, then save it.')
    await writeBlob(folder, layer.bytes)
  }
  await writeBlob(folder, built.config)
  await writeBlob(folder, built.manifest)
  const descriptor = { mediaType: mediaTypes.manifest, digest: built.digest, size: built.manifest.length }
  const entries = tags.length > 0 ? tags.map((tag) => named(descriptor, tag)) : [descriptor]
  await addToIndex(folder, entries)
}

/**
 * Writes what a reference names into a folder: the image, or the index with all of its platforms, and the signatures of
 * each. Throws `RegistryFailure`.
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

/** What the folder's index has to list: the manifest first, and signatures. None where there is no such manifest. */
async function save(
  client: RegistryClient,
  repository: string,
  reference: string,
  folder: string,
  tag?: string,
): Promise<Descriptor[]> {
  const found = await client.manifest(repository, reference)
  if (found === undefined) return []
  const { content, bytes, descriptor } = found
  const signatures: Descriptor[] = []
  if ('manifests' in content) {
    for (const { digest } of content.manifests) {
      // The index lists the image itself.
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
  return [named(descriptor, tag), ...signatures]
}

async function saveSignatures(
  client: RegistryClient,
  repository: string,
  digest: string,
  folder: string,
): Promise<Descriptor[]> {
  const saved = await save(client, repository, signatureTag(digest), folder, signatureTag(digest))
  for (const referrer of await client.referrers(repository, digest, bundleType)) {
    saved.push(...(await save(client, repository, referrer.digest, folder)))
  }
  return saved
}
