import type { RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { readImage } from '@platform/oci/image'
import { parseReference } from '@platform/oci/reference'
import { unpackImage } from '@platform/oci/unpack'
import type { ImageName } from './images.ts'
import type { UnpackedImage } from './launcher.ts'
import { RuntimeError } from './port.ts'

/**
 * Fetches an image from its registry and unpacks it into a folder. Throws `RuntimeError`: `unavailable` if a retry may
 * help, otherwise `refused`.
 */
export async function fetchImage(
  clientOf: (registry: string) => RegistryClient,
  { repository, digest }: ImageName,
  folder: string,
): Promise<UnpackedImage> {
  try {
    const reference = parseReference(`${repository}@${digest}`)
    if (reference === undefined) throw new RegistryError('invalid', 'The reference is invalid.')
    const client = clientOf(reference.registry)
    const image = await readImage(client, reference.repository, digest)
    if (image === undefined) throw new RegistryError('not_found', 'The registry does not have it.')
    return { root: await unpackImage(client, image, folder), config: image.config.config }
  } catch (cause) {
    if (!(cause instanceof RegistryError)) throw cause
    const problem = cause.problem === 'unreachable' ? 'unavailable' : 'refused'
    throw new RuntimeError(problem, `The image ${repository}@${digest} cannot be fetched: ${cause.message}`, { cause })
  }
}
