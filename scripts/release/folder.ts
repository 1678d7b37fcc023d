import { registryClient } from '@platform/registry/client'
import { saveLayout } from '@platform/registry/layout'
import { readIndex, tagOf } from '@platform/registry/layout-folder'
import { plainTransport } from '@platform/registry/plain-transport'
import { startRegistry } from '@platform/local/registry/server'
import { writerName } from '@platform/local/registry/writer'
import { mkdir } from 'node:fs/promises'
import type { Artifact } from './artifact.ts'
import { otherContent, publish } from './publish.ts'

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
  if (present?.digest === artifact.digest) return false
  if (present !== undefined) throw otherContent(`${folder}:${artifact.tag}`)
  const credentials = { username: writerName, password: crypto.randomUUID() }
  const registry = await startRegistry({ folder: workFolder, port: 0, password: credentials.password, log: quiet })
  try {
    const client = registryClient(registry.host, { transport: plainTransport, credentials: async () => credentials })
    await publish({ client, name }, artifact, privateKeyPem, 'tag')
    await saveLayout(client, name, artifact.tag, folder)
  } finally {
    await registry.close(0)
  }
  return true
}
