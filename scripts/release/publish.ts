import { createPublicKey } from 'node:crypto'
import { CliError } from '@platform/cli/exit'
import { forEachLimit } from '@platform/core/lib/async'
import type { RegistryClient } from '@platform/oci/client'
import { signImage, type SignatureLayout } from '@platform/oci/signature/sign'
import { verifyImage } from '@platform/oci/signature/verify'
import { mediaTypes } from '@platform/oci/types'
import type { Artifact } from './artifact.ts'

/** A repository that releases are put into. */
export interface Repository {
  client: RegistryClient
  name: string
}

const atOnce = 4

/**
 * Puts a release and its signature into a repository. The tag comes last, so that nobody finds it unsigned; what is there
 * already, as it is, is left alone. Answers whether there was something to do. Throws `Failure` where the version is there
 * with another content, and `RegistryFailure`.
 */
export async function publish(
  { client, name }: Repository,
  { tag, digest, manifest, blobs }: Artifact,
  privateKeyPem: string,
  layout: SignatureLayout = 'referrer',
): Promise<boolean> {
  const present = await client.resolve(name, tag)
  if (present !== undefined && present.digest !== digest) throw otherContent(`${client.registry}/${name}:${tag}`)
  const trusted = [{ name: 'own', pem: publicHalf(privateKeyPem) }]
  if (present !== undefined && (await verifyImage(client, name, [digest], trusted)).isVerified) return false
  await forEachLimit(atOnce, blobs, async (blob) => void (await client.putBlob(name, blob)))
  await client.putManifest(name, digest, manifest, mediaTypes.manifest)
  await signImage(client, name, digest, privateKeyPem, { layout })
  await client.putManifest(name, tag, manifest, mediaTypes.manifest)
  return true
}

/** The refusal of a version that is there with another content. */
export const otherContent = (place: string): CliError =>
  new CliError(
    'refused',
    `${place} is there already, with another content. A release never changes: take another version.`,
  )

const publicHalf = (privateKeyPem: string): string =>
  createPublicKey(privateKeyPem).export({ type: 'spki', format: 'pem' }).toString()
