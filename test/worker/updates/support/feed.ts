import type { InstalledRelease } from '@platform/core/updates/record'
import { type ReleaseOverrides, startReleaseRegistry } from '../../../support/release.ts'

export const platformFunctions: readonly string[] = ['health', 'clusters', 'queue/batches']

type Wish = ReleaseOverrides & { signer?: 'stranger' | false }

/**
 * A registry with releases, and the settings for it. This file does not import core, which reads the settings when it
 * is imported.
 */
export async function startFeed(settings: Record<string, string> = {}) {
  const registry = await startReleaseRegistry()
  Object.assign(process.env, registry.settings, { PLAT_UPDATE_BAKE_SECONDS: '1' }, settings)

  async function released(version: string, wish: Wish = {}): Promise<InstalledRelease> {
    const { digest } = await registry.push(version, wish)
    return { version, digest, repository: `${registry.host}/${registry.repository}` }
  }
  return { released, close: () => registry[Symbol.asyncDispose]() }
}
