import compareBuild from 'semver/functions/compare-build.js'
import gt from 'semver/functions/gt.js'
import prerelease from 'semver/functions/prerelease.js'
import { type CatalogRelease, type CatalogRepositoryRecord } from './record.ts'

/** Which of many releases of a module is meant (D45, D46). */

/** A release, and the repository that has it. */
export interface CatalogChoice extends CatalogRelease {
  reference: string
}

/** All releases of the catalog by module, those of earlier sources first. */
export const choicesByModule = (repositories: readonly CatalogRepositoryRecord[]): Map<string, CatalogChoice[]> =>
  Map.groupBy(
    repositories.flatMap(({ reference, releases }) => releases.map((release) => ({ ...release, reference }))),
    ({ moduleId }) => moduleId,
  )

const isPrerelease = ({ version }: CatalogRelease): boolean => prerelease(version) !== null

/** Below zero where the first is to be preferred: newer by SemVer; of the same version, what was made later. */
const byAge = (a: CatalogRelease, b: CatalogRelease): number =>
  compareBuild(b.version, a.version) || (b.createdAtMs ?? 0) - (a.createdAtMs ?? 0)

/**
 * The newest release: a verified one where there is any, a prerelease only where there is nothing else. All come from the
 * first source that has such a one: a later source does not outbid it.
 */
export function latestOf(offers: readonly CatalogChoice[]): CatalogChoice | undefined {
  const verified = offers.filter(({ isVerified }) => isVerified)
  const preferred = verified.length > 0 ? verified : offers
  const ofSource = preferred.filter(({ reference }) => reference === preferred[0]?.reference)
  const stable = ofSource.filter((release) => !isPrerelease(release))
  return (stable.length > 0 ? stable : ofSource).toSorted(byAge)[0]
}

/** The release of a version: a verified one where there is any, of the first source that has it. */
export const releaseOf = (offers: readonly CatalogChoice[], version: string): CatalogChoice | undefined =>
  latestOf(offers.filter((release) => release.version === version))

/** Whether a version is newer than another by SemVer's precedence; the build does not count. */
export const isNewer = (version: string, other: string): boolean => gt(version, other)
