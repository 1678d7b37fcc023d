import compareBuild from 'semver/functions/compare-build.js'
import gt from 'semver/functions/gt.js'
import prerelease from 'semver/functions/prerelease.js'
import type { CatalogRelease, CatalogRepositoryRecord } from './record.ts'

export interface CatalogChoice extends CatalogRelease {
  reference: string
}

export const choicesByModule = (repositories: readonly CatalogRepositoryRecord[]): Map<string, CatalogChoice[]> =>
  Map.groupBy(
    repositories.flatMap(({ reference, releases }) => releases.map((release) => ({ ...release, reference }))),
    ({ moduleId }) => moduleId,
  )

const isPrerelease = ({ version }: CatalogRelease): boolean => prerelease(version) !== null

/**
 * Returns a negative number if the first version is higher, including build metadata, or if it is equal and the first
 * release was built later.
 */
const compareReleases = (a: CatalogRelease, b: CatalogRelease): number =>
  compareBuild(b.version, a.version) || (b.createdAtMs ?? 0) - (a.createdAtMs ?? 0)

/**
 * Uses the first source with a verified release, so that later sources cannot override it, or else the first source.
 * Prefers stable versions within that source.
 */
export function latestOf(choices: readonly CatalogChoice[]): CatalogChoice | undefined {
  const verifiedChoices = choices.filter(({ isVerified }) => isVerified)
  const preferredChoices = verifiedChoices.length > 0 ? verifiedChoices : choices
  const fromFirstSource = preferredChoices.filter(({ reference }) => reference === preferredChoices[0]?.reference)
  const stableChoices = fromFirstSource.filter((release) => !isPrerelease(release))
  return (stableChoices.length > 0 ? stableChoices : fromFirstSource).toSorted(compareReleases)[0]
}

/** Prefers verified releases and the first source that has the version. */
export const releaseOf = (choices: readonly CatalogChoice[], version: string): CatalogChoice | undefined =>
  latestOf(choices.filter((release) => release.version === version))

/** Compares by SemVer, ignoring build metadata. */
export const isNewer = (version: string, other: string): boolean => gt(version, other)
