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
import { contentConflict, publish, type Repository } from './publish.ts'

const ignoreLog = (): void => undefined

/** Name of the repository in the temporary registry. The folder does not contain this name. */
const repositoryName = 'platform/releases'

/**
 * Writes a release and its signature to a folder (OCI image layout), and keeps the existing content of the folder. The
 * signature has its own tag, so that any tool copies it. `workFolder` must be empty. Returns the result of `publish`.
 */
export async function publishToFolder(
  folder: string,
  artifact: Artifact,
  privateKeyPem: string,
  workFolder: string,
): Promise<boolean> {
  await mkdir(folder, { recursive: true })
  const existingEntry = (await readIndex(folder))?.find((entry) => tagOf(entry) === artifact.tag)
  if (existingEntry !== undefined && existingEntry.digest !== artifact.digest)
    throw contentConflict(`${folder}:${artifact.tag}`)
  const credentials = { username: writerName, password: crypto.randomUUID() }
  const registry = await startRegistry({ folder: workFolder, port: 0, password: credentials.password, log: ignoreLog })
  try {
    const client = registryClient(registry.host, { transport: plainTransport, credentials: async () => credentials })
    // An existing signature by another key is kept.
    for (const tag of [signatureTag(artifact.digest), artifact.tag])
      await copyTag(folder, tag, { client, name: repositoryName })
    const isNew = await publish({ client, name: repositoryName }, artifact, privateKeyPem, 'tag')
    if (isNew) await saveLayout(client, repositoryName, artifact.tag, folder)
    return isNew
  } finally {
    await registry.close(0)
  }
}

/** Copies a tag from the folder to the repository, if the folder has the tag. */
async function copyTag(folder: string, tag: string, repository: Repository): Promise<void> {
  const { client, name: target } = repository
  const entry = (await readIndex(folder))?.find((each) => tagOf(each) === tag)
  if (entry === undefined) return
  const { content, bytes } = await readManifest(folder, entry.digest)
  if ('manifests' in content) throw contentConflict(`${folder}:${tag}`)
  for (const { digest } of [content.config, ...content.layers])
    await client.putBlob(target, await readBlob(folder, digest, maxLayerBytes))
  await client.putManifest(target, tag, bytes, mediaTypes.manifest)
}
