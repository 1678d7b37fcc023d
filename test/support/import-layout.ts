import type { RegistryClient } from '@platform/oci/client'
import { maxLayerBytes } from '@platform/oci/layer'
import { layoutError, readBlob, readIndex, readManifest, tagOf } from '@platform/oci/layout-folder'
import type { Descriptor, Index, Manifest } from '@platform/oci/types'

export async function importLayout(
  client: RegistryClient,
  repository: string,
  folder: string,
): Promise<(Descriptor & { tag?: string })[]> {
  const images: (Descriptor & { tag?: string })[] = []
  const signatures: (Manifest & { subject: Descriptor })[] = []
  const entries = await readIndex(folder)
  if (entries === undefined) throw layoutError(folder, 'index.json')
  for (const entry of entries) {
    const tag = tagOf(entry)
    const { content, bytes } = await readManifest(folder, entry.digest)
    await sendParts(client, repository, folder, content)
    if (hasSubject(content)) signatures.push(content)
    else {
      const pushed = await client.putManifest(repository, tag ?? entry.digest, bytes, entry.mediaType)
      if (tag?.endsWith('.sig') !== true) images.push({ ...pushed, ...(tag !== undefined && { tag }) })
    }
  }
  for (const signature of signatures) await client.putReferrer(repository, signature)
  return images
}

const hasSubject = (content: Manifest | Index): content is Manifest & { subject: Descriptor } =>
  'subject' in content && content.subject !== undefined

async function sendParts(
  client: RegistryClient,
  repository: string,
  folder: string,
  content: Manifest | Index,
): Promise<void> {
  if ('manifests' in content) {
    for (const { digest, mediaType } of content.manifests) {
      const member = await readManifest(folder, digest)
      await sendParts(client, repository, folder, member.content)
      await client.putManifest(repository, digest, member.bytes, mediaType)
    }
    return
  }
  for (const { digest } of [content.config, ...content.layers]) {
    await client.putBlob(repository, await readBlob(folder, digest, maxLayerBytes))
  }
}
