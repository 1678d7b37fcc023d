import { createHash, createPublicKey } from 'node:crypto'
import { ReleaseDocument, type RelayProgram } from '@platform/core/updates/release-document'
import { readBlob, readIndex, readManifest, tagOf } from '@platform/oci/layout-folder'
import { isSignatureValid, readPrivateKey, signBytes } from '@platform/oci/signature/key'
import type { Repository } from './publish.ts'

/**
 * Signs the file of a relay. Returns `published` if its signature of this file is valid, because a new ECDSA signature
 * would differ.
 */
export function signRelay(file: Uint8Array, privateKeyPem: string, published?: RelayProgram): RelayProgram {
  const key = readPrivateKey(privateKeyPem)
  const sha256 = createHash('sha256').update(file).digest('hex')
  const isSame = published?.sha256 === sha256
  if (isSame && isSignatureValid(createPublicKey(key), file, Buffer.from(published.signature, 'base64')))
    return published
  return { sha256, signature: signBytes(key, file, 'sha256').toString('base64') }
}

const maxDocumentBytes = 256 * 1024

/** Finds the signed relay of a release in a repository or a folder; undefined if there is none. */
export async function findPublishedRelay(source: Repository | string, tag: string): Promise<RelayProgram | undefined> {
  const document =
    typeof source === 'string' ? await readFromFolder(source, tag) : await readFromRepository(source, tag)
  return document && ReleaseDocument.safeParse(JSON.parse(document.toString())).data?.relay
}

async function readFromRepository({ client, name }: Repository, tag: string): Promise<Buffer | undefined> {
  const content = (await client.manifest(name, tag))?.content
  return content && 'config' in content ? client.blob(name, content.config, maxDocumentBytes) : undefined
}

async function readFromFolder(folder: string, tag: string): Promise<Buffer | undefined> {
  const entry = (await readIndex(folder))?.find((each) => tagOf(each) === tag)
  const content = entry && (await readManifest(folder, entry.digest)).content
  return content && 'config' in content ? readBlob(folder, content.config.digest, maxDocumentBytes) : undefined
}
