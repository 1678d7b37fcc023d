import type { InstalledRelease } from '@platform/core/updates/record'
import { type ReleaseOverrides, startReleaseRegistry } from '../../../support/release.ts'

export const platformFunctions: readonly string[] = ['health', 'clusters', 'queue/batches']

type ReleaseOptions = ReleaseOverrides & { signer?: 'stranger' | false }

/**
 * Starts a release registry, and stores its settings in the environment. Call this function before
 * `@platform/core/config` is imported, because that module reads the settings.
 */
export async function startFeed(settings: Record<string, string> = {}) {
  const registry = await startReleaseRegistry()
  Object.assign(process.env, registry.settings, { PLAT_UPDATE_BAKE_SECONDS: '1' }, settings)

  async function released(version: string, options: ReleaseOptions = {}): Promise<InstalledRelease> {
    const { digest } = await registry.push(version, options)
    return { version, digest, repository: `${registry.host}/${registry.repository}` }
  }
  return { released, close: () => registry[Symbol.asyncDispose]() }
}
