import { type PortalConfiguration } from '@platform/contract/portal'
import { isWithin, now } from '../clock.ts'
import { type PlatformState, readState } from '../platform/state.ts'
import { version } from '../lib/version.ts'

/** What a browser must know before anybody has signed in. */

/** What setup has written nobody changes; the time is for the day that somebody does. */
const keepMs = 60_000

let known: { state: PlatformState; atMs: number } | undefined

/**
 * The configuration of the portal. One call; none for a minute in a process that has seen setup complete. That it is not is
 * never remembered: whoever has just completed it must not be sent back to the wizard.
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
