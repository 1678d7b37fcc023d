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
 * Publishes a release and its signature. The tag is written last, so that no unsigned release is found. Returns false
 * where the same release exists. Throws `CliError` where the version exists with other content, and `RegistryError`.
 */
export async function publish(
  { client, name }: Repository,
  { tag, digest, manifest, blobs }: Artifact,
  privateKeyPem: string,
  layout: SignatureLayout = 'referrer',
): Promise<boolean> {
  const hasTag = await client.resolve(name, tag)
  if (hasTag !== undefined && hasTag.digest !== digest) throw contentConflict(`${client.registry}/${name}:${tag}`)
  const trusted = [{ name: 'own', pem: publicKey(privateKeyPem) }]
  if (hasTag !== undefined && (await verifyImage(client, name, [digest], trusted)).isVerified) return false
  await forEachLimit(maxConcurrentUploads, blobs, async (blob) => void (await client.putBlob(name, blob)))
  await client.putManifest(name, digest, manifest, mediaTypes.manifest)
  await signImage(client, name, digest, privateKeyPem, { layout })
  await client.putManifest(name, tag, manifest, mediaTypes.manifest)
  return true
}

export const contentConflict = (place: string): CliError =>
  new CliError('refused', `${place} already exists with other content. Releases never change: use another version.`)

const publicKey = (privateKeyPem: string): string =>
  createPublicKey(privateKeyPem).export({ type: 'spki', format: 'pem' }).toString()
