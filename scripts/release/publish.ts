import { createPublicKey } from 'node:crypto'
import { CliError } from '@platform/cli/exit'
import { forEachLimit } from '@platform/core/lib/async'
import type { RegistryClient } from '@platform/oci/client'
import { signImage, type SignatureLayout } from '@platform/oci/signature/sign'
import { verifyImage } from '@platform/oci/signature/verify'
import { mediaTypes } from '@platform/oci/types'
import type { Artifact } from './artifact.ts'

export interface Repository {
  client: RegistryClient
  name: string
}

const maxConcurrentUploads = 4

/**
 * Publishes a release and its signature. Writes the tag last, so that a new tag always refers to a signed release.
 * Returns false if the tag already refers to this release and the key has signed it. Throws `CliError` if the tag
 * refers to other content, and `RegistryError` if a call of the registry fails.
 */
export async function publish(
  { client, name }: Repository,
  { tag, digest, manifest, blobs }: Artifact,
  privateKeyPem: string,
  layout: SignatureLayout = 'referrer',
): Promise<boolean> {
  const existingTag = await client.resolve(name, tag)
  if (existingTag !== undefined && existingTag.digest !== digest)
    throw contentConflict(`${client.registry}/${name}:${tag}`)
  const trustedKeys = [{ name: 'own', pem: publicKeyOf(privateKeyPem) }]
  if (existingTag !== undefined && (await verifyImage(client, name, [digest], trustedKeys)).isVerified) return false
  await forEachLimit(maxConcurrentUploads, blobs, async (blob) => void (await client.putBlob(name, blob)))
  await client.putManifest(name, digest, manifest, mediaTypes.manifest)
  await signImage(client, name, digest, privateKeyPem, { layout })
  await client.putManifest(name, tag, manifest, mediaTypes.manifest)
  return true
}

export const contentConflict = (reference: string): CliError =>
  new CliError('refused', `${reference} already exists with other content. Releases never change: use another version.`)

const publicKeyOf = (privateKeyPem: string): string =>
  createPublicKey(privateKeyPem).export({ type: 'spki', format: 'pem' }).toString()
