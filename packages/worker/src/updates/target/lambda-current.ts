import { forEachLimit } from '@platform/core/lib/async'
import { type InstalledRelease } from '@platform/core/updates/record'
import { maxConcurrentCalls, findFunction, type LambdaControl } from './lambda-control.ts'
import { cloudNameOf, releaseIn } from './lambda-names.ts'
import { type AliasState, type AliasStates } from './lambda-aliases.ts'
import { reportedVersion } from './lambda-versions.ts'
import { TargetError } from './port.ts'

interface Serving extends AliasState {
  name: string
  /** Undefined where it was deployed and says nothing, because it is broken, say. */
  release: InstalledRelease | undefined
}

/**
 * The release that all functions are of. Where they differ a commit, or the way back from one, was cut off: what is left of
 * the shares tells which release it began with. Two calls for each function, three where it was deployed. Throws a final
 * `TargetFailure` where nothing explains what there is.
 */
export async function servingRelease(control: LambdaControl, places: AliasStates): Promise<InstalledRelease> {
  const found: Serving[] = []
  await forEachLimit(maxConcurrentCalls, control.names, async (name) => {
    const place = await places.now(name)
    found.push({ ...place, name, release: await releaseOf(control, name, place.main) })
  })
  const telling = found.filter(({ release }) => release !== undefined)
  const releases = new Set(telling.map(({ release }) => `${release?.version} ${release?.digest}`))
  const [first] = releases.size <= 1 ? telling : telling.filter(({ other }) => other !== undefined)
  if (first?.release !== undefined) return first.release
  if (telling.length === 0) return { version: 'unknown' }
  const all = telling.map(({ name, release }) => `${name} ${release?.version}`)
  throw new TargetError(`The functions are of different releases: ${all.join(', ').slice(0, 400)}.`, {
    isFinal: true,
  })
}

/** What a version says of itself; one that was deployed says it when it is asked. */
async function releaseOf(control: LambdaControl, name: string, number: string): Promise<InstalledRelease | undefined> {
  const cloudName = cloudNameOf(control.prefix, name)
  const release = releaseIn(await findFunction(control, cloudName, number))
  if (release !== undefined) return release
  const version = await reportedVersion(control, cloudName, number)
  return version === undefined ? undefined : { version }
}
