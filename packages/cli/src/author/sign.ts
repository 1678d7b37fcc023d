import { readImage } from '@platform/oci/image'
import { signImage, type SignatureLayout } from '@platform/oci/signature/sign'
import { type TrustedKey, type Verdict, verifyImage } from '@platform/oci/signature/verify'
import { CliError } from '../exit.ts'
import { formatTarget, openRemote, type Remote } from './remote.ts'

/** Signs what a reference names; answers its digest. Throws `Failure` and `RegistryFailure`. */
export async function signRemote(image: string, privateKeyPem: string, layout: SignatureLayout): Promise<string> {
  const remote = openRemote(image)
  const digest = await digestAt(remote)
  await signImage(remote.client, remote.repository, digest, privateKeyPem, { layout })
  return digest
}

/** Whether one of the keys has signed what a reference names, as a platform asks: the whole, or what runs here of it. */
export async function verifyRemote(image: string, keys: readonly TrustedKey[]): Promise<Verdict> {
  const remote = openRemote(image)
  const { client, repository } = remote
  const digest = await digestAt(remote)
  const own = await readImage(client, repository, digest)
  return verifyImage(client, repository, own ? [digest, own.digest] : [digest], keys)
}

async function digestAt(remote: Remote): Promise<string> {
  const found = await remote.client.resolve(remote.repository, remote.target)
  if (found === undefined) throw new CliError('refused', `There is no image ${formatTarget(remote)}.`)
  return found.digest
}
