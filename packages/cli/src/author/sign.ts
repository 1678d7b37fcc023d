import { readImage } from '@platform/oci/image'
import { signImage, type SignatureLayout } from '@platform/oci/signature/sign'
import { type TrustedKey, type Verdict, verifyImage } from '@platform/oci/signature/verify'
import { CliError } from '../exit.ts'
import { formatTarget, openRemote, type Remote } from './remote.ts'

/** Signs an image in a registry and returns its digest. Throws `CliError` or `RegistryError`. */
export async function signRemote(image: string, privateKeyPem: string, layout: SignatureLayout): Promise<string> {
  const remote = openRemote(image)
  const digest = await digestAt(remote)
  await signImage(remote.client, remote.repository, digest, privateKeyPem, { layout })
  return digest
}

/** Verifies an image as the platform does: accepts a signature of its index or of the manifest for this machine. */
export async function verifyRemote(image: string, keys: readonly TrustedKey[]): Promise<Verdict> {
  const remote = openRemote(image)
  const { client, repository } = remote
  const digest = await digestAt(remote)
  const ownImage = await readImage(client, repository, digest)
  return verifyImage(client, repository, ownImage ? [digest, ownImage.digest] : [digest], keys)
}

async function digestAt(remote: Remote): Promise<string> {
  const descriptor = await remote.client.resolve(remote.repository, remote.target)
  if (descriptor === undefined) throw new CliError('refused', `Image not found: ${formatTarget(remote)}.`)
  return descriptor.digest
}
