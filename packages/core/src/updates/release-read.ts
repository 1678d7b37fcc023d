import { type RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { verifyImage } from '@platform/oci/signature/verify'
import { type Index, type Manifest } from '@platform/oci/types'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import {
  functionAnnotation,
  functionMediaType,
  type Release,
  ReleaseDocument,
  releaseMediaType,
} from './release-document.ts'

/** What a manifest of the release repository is: a release, or the reason why it is none (D50). */

const documentBytes = 256 * 1024
/** Far more than the platform has; each of what Lambda takes at once. */
const [functionLimit, functionBytes] = [200, 50 * 1024 * 1024]

/** Why something is no release that can be used: a sentence for people. */
export interface InvalidReleaseError {
  reason: string
}

/**
 * Reads what a tag or a digest names. Nothing of it is believed, and its document not even read, before a key of
 * `PLAT_RELEASE_KEYS` is found to have signed it. Throws `RegistryFailure` where the registry is of no help; what is broken
 * there is no release. No store calls; a request for the manifest, one for the document, two and more for signatures.
 */
export async function readRelease(
  client: RegistryClient,
  repository: string,
  reference: string,
): Promise<Release | InvalidReleaseError> {
  try {
    return await read(client, repository, reference)
  } catch (error) {
    if (!isBroken(error)) throw error
    return refused(error.message)
  }
}

/** Whether a registry has answered, and what it has is no good: asking again would not help. */
export const isBroken = (error: unknown): error is RegistryError =>
  error instanceof RegistryError && ['invalid', 'not_found', 'too_large'].includes(error.problem)

async function read(
  client: RegistryClient,
  repository: string,
  reference: string,
): Promise<Release | InvalidReleaseError> {
  const found = await client.manifest(repository, reference)
  if (found === undefined) return refused('The repository has no such release.')
  const { content, descriptor } = found
  if (!isRelease(content)) return refused('It is something else than a release of the platform.')
  const verdict = await verifyImage(client, repository, [descriptor.digest], config.PLAT_RELEASE_KEYS, { atMs: now() })
  if (!verdict.isVerified) return refused(verdict.reason)
  const document = parse(await client.blob(repository, content.config, documentBytes))
  if (document === undefined) return refused('What it says of itself cannot be understood.')
  if (!hasLayersOf(content, document)) return refused('What it consists of is not what it says of itself.')
  const { digest } = descriptor
  return { document, repository: `${client.registry}/${repository}`, digest, verifiedBy: verdict.by }
}

/** What people read of a reason is bounded; registries name what is in them as they like. */
const refused = (reason: string): InvalidReleaseError => ({ reason: reason.slice(0, 500).toWellFormed() })

const isRelease = (content: Manifest | Index): content is Manifest =>
  'layers' in content && content.artifactType === releaseMediaType && content.config.mediaType === releaseMediaType

function parse(bytes: Buffer): ReleaseDocument | undefined {
  try {
    return ReleaseDocument.safeParse(JSON.parse(bytes.toString())).data
  } catch {
    return undefined
  }
}

/** Each function of the document is one layer, and nothing else is: so that no registry can leave one out or add one. */
function hasLayersOf({ layers }: Manifest, { functions }: ReleaseDocument): boolean {
  const named = new Map(layers.map((layer) => [layer.annotations?.[functionAnnotation], layer]))
  const told = Object.entries(functions)
  const isComplete = told.length > 0 && told.length <= functionLimit && told.length === layers.length
  return (
    isComplete &&
    told.every(([name, { digest, size }]) => {
      const layer = named.get(name)
      const isSame = layer?.digest === digest && layer.size === size && layer.mediaType === functionMediaType
      return isSame && size <= functionBytes
    })
  )
}
