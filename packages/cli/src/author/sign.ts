import { readImage } from '@platform/oci/image'
import { signImage, type SignatureLayout } from '@platform/oci/signature/sign'
import { type TrustedKey, type Verdict, verifyImage } from '@platform/oci/signature/verify'
import { CliError } from '../exit.ts'
import { formatTarget, openRemote, type Remote } from './remote.ts'

/** Signs an image in a registry and returns its digest. Throws `CliError` or `RegistryError`. */
export async function signRemote(image: string, privateKeyPem: string, layout: SignatureLayout): Promise<string> {
  const remoteImage = openRemote(image)
  const digest = await digestAt(remoteImage)
  await signImage(remoteImage.client, remoteImage.repository, digest, privateKeyPem, { layout })
  return digest
}

/** Verifies an image as the platform does: accepts a signature of its index or of the manifest for this machine. */
export async function verifyRemote(image: string, keys: readonly TrustedKey[]): Promise<Verdict> {
  const remoteImage = openRemote(image)
  const { client, repository } = remoteImage
  const digest = await digestAt(remoteImage)
  const ownImage = await readImage(client, repository, digest)
  return verifyImage(client, repository, ownImage ? [digest, ownImage.digest] : [digest], keys)
}

async function digestAt(remoteImage: Remote): Promise<string> {
  const descriptor = await remoteImage.client.resolve(remoteImage.repository, remoteImage.target)
  if (descriptor === undefined) throw new CliError('refused', `Image not found: ${formatTarget(remoteImage)}.`)
  return descriptor.digest
}
