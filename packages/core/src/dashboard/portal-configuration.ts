import type { PortalConfiguration } from '@platform/contract/portal'
import { isWithin, now } from '../clock.ts'
import { config } from '../config.ts'
import { type PlatformState, readState } from '../platform/state.ts'
import { version } from '../lib/version.ts'

/** Changes of the settings take effect within this time. */
const cacheMs = 60_000

let cache: { state: PlatformState; atMs: number } | undefined

/**
 * Readable before sign-in. An incomplete setup is not cached, because a stale state would show the setup wizard again.
 */
export async function portalConfiguration(): Promise<PortalConfiguration> {
  const { setupComplete, platformName, timezone, publicUrl } = await currentState()
  return {
    setupComplete,
    ...(setupComplete && platformName !== undefined && { platformName }),
    ...(setupComplete && timezone !== undefined && { timezone }),
    ...(setupComplete && publicUrl !== undefined && { publicUrl }),
    ...(config.PLAT_DEMO === 'true' && { isDemo: true }),
    version,
  }
}

async function currentState(): Promise<PlatformState> {
  if (cache !== undefined && isWithin(cache.atMs, cacheMs)) return cache.state
  const state = await readState()
  cache = state.setupComplete ? { state, atMs: now() } : undefined
  return state
}
