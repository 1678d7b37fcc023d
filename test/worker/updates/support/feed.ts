import type { InstalledRelease } from '@platform/core/updates/record'
import { type ReleaseWish, startReleaseRegistry } from '../../../support/release.ts'

/** What the platform of these tests consists of. */
export const names: readonly string[] = ['health', 'clusters', 'queue/jobs']

type Wish = ReleaseWish & { signer?: 'stranger' | false }

/** A registry with releases that the platform is told to look at. Loads nothing of core's settings: these come first. */
export async function startFeed(settings: Record<string, string> = {}) {
  const registry = await startReleaseRegistry()
  Object.assign(process.env, registry.settings, { PLAT_UPDATE_BAKE_SECONDS: '1' }, settings)

  /** Pushes a release that can be applied; answers how it is installed. */
  async function released(version: string, wish: Wish = {}): Promise<InstalledRelease> {
    const { digest } = await registry.push(version, wish)
    return { version, digest, repository: `${registry.host}/${registry.repository}` }
  }
  return { released, close: () => registry[Symbol.asyncDispose]() }
}
