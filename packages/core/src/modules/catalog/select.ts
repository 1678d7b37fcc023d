import compareBuild from 'semver/functions/compare-build.js'
import gt from 'semver/functions/gt.js'
import prerelease from 'semver/functions/prerelease.js'
import { type CatalogRelease, type CatalogRepositoryRecord } from './record.ts'

/** Selects a release of a module. */

/** A release and its repository. */
export interface CatalogChoice extends CatalogRelease {
  reference: string
}

/** All releases of the catalog by module, in the order of the sources. */
export const choicesByModule = (repositories: readonly CatalogRepositoryRecord[]): Map<string, CatalogChoice[]> =>
  Map.groupBy(
    repositories.flatMap(({ reference, releases }) => releases.map((release) => ({ ...release, reference }))),
    ({ moduleId }) => moduleId,
  )

const isPrerelease = ({ version }: CatalogRelease): boolean => prerelease(version) !== null

/** Negative if the first one is preferred: newer by SemVer, or built later. */
const byAge = (a: CatalogRelease, b: CatalogRelease): number =>
  compareBuild(b.version, a.version) || (b.createdAtMs ?? 0) - (a.createdAtMs ?? 0)

/**
 * The newest release, preferring verified ones and stable versions, from the first source that has such a release:
 * later sources cannot override it.
 */
export function latestOf(offers: readonly CatalogChoice[]): CatalogChoice | undefined {
  const verified = offers.filter(({ isVerified }) => isVerified)
  const preferred = verified.length > 0 ? verified : offers
  const ofSource = preferred.filter(({ reference }) => reference === preferred[0]?.reference)
  const stable = ofSource.filter((release) => !isPrerelease(release))
  return (stable.length > 0 ? stable : ofSource).toSorted(byAge)[0]
}

/** The release of a version, preferring verified ones, from the first source that has it. */
export const releaseOf = (offers: readonly CatalogChoice[], version: string): CatalogChoice | undefined =>
  latestOf(offers.filter((release) => release.version === version))

/** Whether a version is newer than another by SemVer; build metadata is ignored. */
export const isNewer = (version: string, other: string): boolean => gt(version, other)
