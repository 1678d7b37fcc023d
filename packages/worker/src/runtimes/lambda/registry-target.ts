import { type RegistryClient } from '@platform/oci/client'
import { RegistryError } from '@platform/oci/error'

/** Where Lambda takes images from: a repository for each module. */
export interface TargetRegistry {
  client: RegistryClient
  /** Below it the repositories lie: `platform/modules`. */
  path: string
  /** Called before anything is sent to a repository; one that exists already is fine. */
  ensureRepository: (repository: string) => Promise<void>
  /** Removes a repository with all its images; one that has gone already is fine. */
  removeRepository: (repository: string) => Promise<void>
}

/** A registry that makes repositories as images come. A repository without a manifest is as good as none. */
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
      const found = await client.resolve(repository, tag)
      if (found !== undefined) digests.add(found.digest)
    }
  } catch (error) {
    if (!(error instanceof RegistryError) || error.problem !== 'not_found') throw error
  }
  return digests
}
