import type { RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'
import { type Platform, readImage } from '@platform/oci/image'
import { formatReference, parseReference } from '@platform/oci/reference'
import { replicateImage } from '@platform/oci/push'
import { type DeploymentSpec, RuntimeError } from '../port.ts'

/** The registry from which Lambda reads images: one repository for each module. */
export interface TargetRegistry {
  client: RegistryClient
  /** Parent path of the repositories, such as `platform/modules`. */
  path: string
  /** Creates a repository before its first use. An existing repository is not an error. */
  ensureRepository: (repository: string) => Promise<void>
  /** Removes a repository with all its images; a missing one is not an error. */
  removeRepository: (repository: string) => Promise<void>
}

/** Creates the target for a registry that creates repositories on demand. Empty repositories count as missing. */
export const ociTarget = (client: RegistryClient, path: string): TargetRegistry => ({
  client,
  path,
  ensureRepository: async () => {},
  removeRepository: async (repository) => {
    for (const digest of await digestsIn(client, repository)) await client.remove(repository, digest)
  },
})

async function digestsIn(client: RegistryClient, repository: string): Promise<Set<string>> {
  const digests = new Set<string>()
  try {
    for await (const tag of client.tags(repository)) {
      const descriptor = await client.resolve(repository, tag)
      if (descriptor !== undefined) digests.add(descriptor.digest)
    }
  } catch (error) {
    if (!(error instanceof RegistryError) || error.problem !== 'not_found') throw error
  }
  return digests
}

export interface ImageRoute {
  source: (registry: string) => RegistryClient
  target: TargetRegistry
  /** The platform of the functions: Lambda does not accept an index. */
  platform: Platform
}

export const repositoryOf = ({ path }: TargetRegistry, moduleId: string): string => `${path}/${moduleId}`

/**
 * Copies the image of a deployment to the registry that Lambda reads and returns its URI, by digest. Does not send
 * existing content again. Throws `RuntimeError`: `unavailable` if a retry may help, otherwise `refused`.
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
function requireArchitecture(architecture: string, expected: string): void {
  if (architecture === expected) return
  const advice = `Build it with plat module build --platform linux/${expected} --from IMAGE, where IMAGE contains Node.js`
  throw new RegistryError('invalid', `it is made for ${architecture}, and functions are ${expected}. ${advice}`)
}
