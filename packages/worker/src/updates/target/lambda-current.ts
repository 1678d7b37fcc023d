import { forEachLimit } from '@platform/core/lib/async'
import { type InstalledRelease } from '@platform/core/updates/record'
import { getFunction } from '../../runtimes/lambda/control.ts'
import { type AliasControl, cloudNameOf, maxConcurrentCalls, releaseIn } from './lambda-functions.ts'
import { type AliasState, type AliasStates } from './lambda-aliases.ts'
import { reportedVersion } from './lambda-versions.ts'
import { TargetError } from './port.ts'

interface Serving extends AliasState {
  name: string
  /** Undefined for a deployed version that does not report it, for example because it is broken. */
  release: InstalledRelease | undefined
}

/**
 * The release of all functions. If they differ, a commit or its reversal was interrupted: the remaining shares identify
 * the release before it. Two calls for each function, three if it was deployed. Throws a final `TargetError` if the
 * state cannot be explained.
 */
export async function servingRelease(control: AliasControl, aliases: AliasStates): Promise<InstalledRelease> {
  const states: Serving[] = []
  await forEachLimit(maxConcurrentCalls, control.names, async (name) => {
    const state = await aliases.now(name)
    states.push({ ...state, name, release: await releaseOf(control, name, state.main) })
  })
  const known = states.filter(({ release }) => release !== undefined)
  const releases = new Set(known.map(({ release }) => `${release?.version} ${release?.digest}`))
  const [first] = releases.size <= 1 ? known : known.filter(({ other }) => other !== undefined)
  if (first?.release !== undefined) return first.release
  if (known.length === 0) return { version: 'unknown' }
  const all = known.map(({ name, release }) => `${name} ${release?.version}`)
  throw new TargetError(`The functions are of different releases: ${all.join(', ').slice(0, 400)}.`, {
    isFinal: true,
  })
}

/** The release in a version's description; a deployed version is invoked to report it. */
async function releaseOf(control: AliasControl, name: string, number: string): Promise<InstalledRelease | undefined> {
  const cloudName = cloudNameOf(control.prefix, name)
  const { configuration } = await getFunction(control, cloudName, number)
  const release = releaseIn(configuration)
  if (release !== undefined) return release
  const version = await reportedVersion(control, cloudName, number)
  return version === undefined ? undefined : { version }
}
