import { type RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'

/** The registry that Lambda reads images from: one repository for each module. */
export interface TargetRegistry {
  client: RegistryClient
  /** Parent path of the repositories: `platform/modules`. */
  path: string
  /** Called before anything is sent to a repository; an existing one is not an error. */
  ensureRepository: (repository: string) => Promise<void>
  /** Removes a repository with all its images; a missing one is not an error. */
  removeRepository: (repository: string) => Promise<void>
}

/** A registry that creates repositories on demand. A repository without manifests counts as missing. */
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
      const current = await client.resolve(repository, tag)
      if (current !== undefined) digests.add(current.digest)
    }
  } catch (error) {
    if (!(error instanceof RegistryError) || error.problem !== 'not_found') throw error
  }
  return digests
}
