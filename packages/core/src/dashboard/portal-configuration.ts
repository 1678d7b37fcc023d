import { type PortalConfiguration } from '@platform/contract/portal'
import { isWithin, now } from '../clock.ts'
import { type PlatformState, readState } from '../platform/state.ts'
import { version } from '../lib/version.ts'

/** Configuration that a browser needs before sign-in. */

/** Setup writes the configuration once; the limit would pick up later changes. */
const keepMs = 60_000

let known: { state: PlatformState; atMs: number } | undefined

/**
 * The portal's configuration. One call; after setup a process caches it for a minute. Incomplete setup is never cached,
 * so that the wizard is not shown again.
 */
export async function portalConfiguration(): Promise<PortalConfiguration> {
  const { setupComplete, platformName, timezone, publicUrl } = await currentState()
  return {
    setupComplete,
    ...(setupComplete && platformName !== undefined && { platformName }),
    ...(setupComplete && timezone !== undefined && { timezone }),
    ...(setupComplete && publicUrl !== undefined && { publicUrl }),
    version,
  }
}

async function currentState(): Promise<PlatformState> {
  if (known !== undefined && isWithin(known.atMs, keepMs)) return known.state
  const state = await readState()
  known = state.setupComplete ? { state, atMs: now() } : undefined
  return state
}
