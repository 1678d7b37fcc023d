import { type InstalledRelease, type UpdateState } from './record.ts'
import { isReleased, version } from '../lib/version.ts'

/** Which release serves, and which one did before it, as the state of updates tells. */

/** Whether what was applied last serves: a deployment that is of the same version has taken its place, too. */
const isApplied = ({ version: its, digest }: InstalledRelease): boolean =>
  its === version && (digest !== undefined) === isReleased

/** What serves now: as it was applied, or, where it was deployed, its version alone. */
export const activeRelease = ({ current }: UpdateState): InstalledRelease =>
  current !== undefined && isApplied(current) ? current : { version }

/** What a rollback goes back to; nothing where the platform was deployed since, and neither release serves. */
export const previousRelease = ({ current, previous }: UpdateState): InstalledRelease | undefined =>
  current !== undefined && isApplied(current) ? previous : undefined
