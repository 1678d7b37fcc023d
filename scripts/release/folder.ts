import { registryClient } from '@platform/oci/client'
import { saveLayout } from '@platform/oci/layout'
import { maxLayerBytes } from '@platform/oci/layer'
import { readBlob, readIndex, readManifest, tagOf } from '@platform/oci/layout-folder'
import { plainTransport } from '@platform/oci/plain-transport'
import { signatureTag } from '@platform/oci/signature/sign'
import { mediaTypes } from '@platform/oci/types'
import { startRegistry } from '@platform/local/registry/server'
import { writerName } from '@platform/local/registry/writer'
import { mkdir } from 'node:fs/promises'
import type { Artifact } from './artifact.ts'
import { otherContent, publish, type Repository } from './publish.ts'

const quiet = (): void => undefined

/** What an artifact is called in a registry of its own; it is not written down. */
const name = 'platform/releases'

/**
 * Writes a release and its signature into a folder (OCI image layout), beside those that are there. Signed in the layout
 * that any tool carries, because it is under a tag of its own. Answers as `publish` does. `workFolder` is empty.
 */
export async function publishToFolder(
  folder: string,
  artifact: Artifact,
  privateKeyPem: string,
  workFolder: string,
): Promise<boolean> {
  await mkdir(folder, { recursive: true })
  const present = (await readIndex(folder))?.find((entry) => tagOf(entry) === artifact.tag)
  if (present !== undefined && present.digest !== artifact.digest) throw otherContent(`${folder}:${artifact.tag}`)
  const credentials = { username: writerName, password: crypto.randomUUID() }
  const registry = await startRegistry({ folder: workFolder, port: 0, password: credentials.password, log: quiet })
  try {
    const client = registryClient(registry.host, { transport: plainTransport, credentials: async () => credentials })
    // What is there may have been signed with another key: that signature stays, beside this one.
    for (const tag of [signatureTag(artifact.digest), artifact.tag]) await load(folder, tag, { client, name })
    const isNew = await publish({ client, name }, artifact, privateKeyPem, 'tag')
    if (isNew) await saveLayout(client, name, artifact.tag, folder)
    return isNew
  } finally {
    await registry.close(0)
  }
}

/** Puts what a folder has under a tag into a repository; nothing where it has none. */
async function load(folder: string, tag: string, repository: Repository): Promise<void> {
  const { client, name: to } = repository
  const entry = (await readIndex(folder))?.find((each) => tagOf(each) === tag)
  if (entry === undefined) return
  const { content, bytes } = await readManifest(folder, entry.digest)
  if ('manifests' in content) throw otherContent(`${folder}:${tag}`)
  for (const { digest } of [content.config, ...content.layers])
    await client.putBlob(to, await readBlob(folder, digest, maxLayerBytes))
  await client.putManifest(to, tag, bytes, mediaTypes.manifest)
}
