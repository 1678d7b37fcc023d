import { type InstalledRelease } from './record.ts'

/** A release that came from a repository; one that was deployed has no digest. */
export interface FetchedRelease extends InstalledRelease {
  digest: string
}

/** What tells releases apart, and nothing else that a caller may have at hand. */
export function releaseIdentity(release: FetchedRelease): { version: string; repository?: string; digest: string }
export function releaseIdentity(release: InstalledRelease): InstalledRelease
export function releaseIdentity({ version, repository, digest }: InstalledRelease): InstalledRelease {
  return { version, ...(repository !== undefined && { repository }), ...(digest !== undefined && { digest }) }
}

/** Whether two are the same release; where it came from does not tell. */
export const isSameRelease = (one: InstalledRelease, other: InstalledRelease): boolean =>
  one.version === other.version && one.digest === other.digest
