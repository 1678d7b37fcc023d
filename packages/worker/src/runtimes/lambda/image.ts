import { type RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { type Platform, readImage } from '@platform/oci/image'
import { formatReference, parseReference } from '@platform/oci/reference'
import { replicateImage } from '@platform/oci/replicate'
import { type TargetRegistry } from './registry-target.ts'
import { type DeploymentSpec, RuntimeError } from '../port.ts'

/** The source and target registries of images. */
export interface ImageRoute {
  source: (registry: string) => RegistryClient
  target: TargetRegistry
  /** The platform of the functions: Lambda does not accept an index. */
  platform: Platform
}

/** The repository of a module's images. */
export const repositoryOf = ({ path }: TargetRegistry, moduleId: string): string => `${path}/${moduleId}`

/**
 * Copies the image of an assignment to the registry of Lambda and returns its URI, by digest. Existing content is not
 * sent again. Throws `RuntimeError`: `unavailable` if a retry may help, otherwise `refused`.
 */
export async function copyImage({ source, target, platform }: ImageRoute, spec: DeploymentSpec): Promise<string> {
  const { repository: name, digest, moduleId } = spec
  try {
    const from = parseReference(`${name}@${digest}`)
    if (from === undefined) throw new RegistryError('invalid', 'the reference is invalid')
    const client = source(from.registry)
    const image = await readImage(client, from.repository, digest, platform)
    if (image === undefined) throw new RegistryError('not_found', 'the registry does not have it')
    requireArchitecture(image.config.architecture, platform.architecture)
    const repository = repositoryOf(target, moduleId)
    await target.ensureRepository(repository)
    // The tag is derived from the content, so that concurrent copies share it.
    await replicateImage(client, image, target.client, repository, image.digest.slice('sha256:'.length))
    return formatReference({ registry: target.client.registry, repository, digest: image.digest })
  } catch (cause) {
    if (!(cause instanceof RegistryError)) throw cause
    const problem = cause.problem === 'unreachable' ? 'unavailable' : 'refused'
    throw new RuntimeError(problem, `The image ${name}@${digest} cannot be copied: ${cause.message}`, { cause })
  }
}

/** Throws `RegistryError`, with advice, for an image of an architecture that functions cannot run. */
function requireArchitecture(current: string, expected: string): void {
  if (current === expected) return
  const advice = `Build it with plat module build --platform linux/${expected} --from IMAGE, one with Node.js`
  throw new RegistryError('invalid', `it is made for ${current}, and functions are ${expected}. ${advice}`)
}
