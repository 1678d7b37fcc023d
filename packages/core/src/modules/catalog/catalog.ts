import * as z from 'zod'
import { latestOf, choicesByModule } from './select.ts'
import { CatalogRelease, CatalogRepositoryRecord, CatalogScanRecord } from './record.ts'
import * as keys from '../../db/keys.ts'
import { type Item, batchPut, queryAll, remove } from '../../db/table.ts'
import { transact } from '../../db/transact.ts'
import { jsonString } from '../../lib/validate.ts'
import { chunk } from '../../lib/async.ts'

/** The catalog of the last scan. Reading it needs no registry. */

/** Limit of stored releases per repository, the newest ones. */
export const releaseLimit = 200
/** Limit of stored digests per repository that are not releases. */
const otherLimit = 150
/** Limit of stored problems of a scan. */
const problemLimit = 50
const problemLength = 500

/** The catalog: repositories in the order of the sources, and the last scan, if any. */
export interface Catalog {
  repositories: readonly CatalogRepositoryRecord[]
  scan?: CatalogScanRecord
}

/** The catalog. One call per 1 MB, which holds about a hundred repositories. */
export async function readCatalog(): Promise<Catalog> {
  const items = await queryAll(keys.catalog())
  const scan = items.find(({ sk }) => sk === keys.catalogScan().sk)
  const repositories = items.filter((item) => item !== scan).map((item) => CatalogRepositoryRecord.parse(item))
  return {
    repositories: repositories.toSorted((a, b) => a.place - b.place || (a.reference < b.reference ? -1 : 1)),
    ...(scan && { scan: CatalogScanRecord.parse(scan) }),
  }
}

/**
 * Stores the result of a scan and replaces that of an earlier one (`before`). Of concurrent scans the last one wins.
 * One call per 25 changed repositories, and one per 100 removed ones.
 */
export async function storeCatalog({ repositories, scan }: Required<Catalog>, before: Catalog): Promise<void> {
  const found = new Set(repositories.map(({ reference }) => reference))
  const gone = before.repositories.filter(({ reference }) => !found.has(reference))
  const problems = scan.problems.slice(0, problemLimit).map((problem) => problem.slice(0, problemLength))
  const known = new Set(before.repositories.map((row) => JSON.stringify(itemOf(row))))
  const changed = repositories.map(itemOf).filter((item) => !known.has(JSON.stringify(item)))
  await batchPut([...changed, { ...keys.catalogScan(), ...scan, problems, latest: latestText(repositories) }])
  const removals = gone.map(({ reference }) => remove(keys.catalogRepository(reference)))
  for (const part of chunk(removals, 100)) await transact(part)
}

/** Holds thousands of modules and is small enough for frequent reads. Further modules show no updates. */
const latestBytes = 100_000

/** The newest version of each module as JSON, so that counting updates reads one item instead of the catalog. */
function latestText(repositories: readonly CatalogRepositoryRecord[]): string {
  const latest = [...choicesByModule(repositories)].flatMap(([id, offers]) => {
    const release = latestOf(offers)
    return release === undefined ? [] : [[id, release.version]]
  })
  return fitting(latest, latestBytes)
}

const Latest = z.object({ latest: jsonString(z.array(z.tuple([z.string(), z.string()]))).optional() })

/** The newest version of each module, from the item of the last scan; empty without one. */
export const latestVersions = (scan: Item | undefined): ReadonlyMap<string, string> =>
  new Map(Latest.parse(scan ?? {}).latest)

/** An item holds 400 KB; these limits always fit. */
const [releasesBytes, othersBytes] = [330_000, 60_000]

function itemOf({ reference, place, releases, others = [] }: CatalogRepositoryRecord): Item {
  const known = others.length > 0 ? { others: fitting(others.slice(0, otherLimit), othersBytes) } : {}
  // Parsing fixes the member order: unchanged repositories have the same text and are not written.
  const kept = fitting(
    releases.slice(0, releaseLimit).map((release) => CatalogRelease.parse(release)),
    releasesBytes,
  )
  return { ...keys.catalogRepository(reference), reference, place, releases: kept, ...known }
}

/** The JSON of the first elements within the limit. */
function fitting(all: readonly object[], limitBytes: number): string {
  let bytes = 0
  const texts = all.map((each) => JSON.stringify(each))
  return `[${texts.filter((text) => (bytes += Buffer.byteLength(text) + 1) < limitBytes).join()}]`
}
