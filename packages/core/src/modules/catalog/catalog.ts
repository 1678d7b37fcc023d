import * as z from 'zod'
import { latestOf, choicesByModule } from './select.ts'
import { CatalogRelease, CatalogRepositoryRecord, CatalogScanRecord } from './record.ts'
import * as keys from '../../db/keys.ts'
import { type Item, batchPut, queryAll, remove } from '../../db/table.ts'
import { transact } from '../../db/transact.ts'
import { jsonString } from '../../lib/json.ts'
import { chunk } from '../../lib/async.ts'

/** What the sources of modules hold, as the last scan found it (D45). Whoever asks for the catalog asks no registry. */

/** Releases that are kept of a repository, the newest ones. */
export const releaseLimit = 200
/** Digests that are kept of a repository and are no releases. */
const otherLimit = 150
/** Problems that are kept of a scan. */
const problemLimit = 50
const problemLength = 500

/** The whole catalog: repositories in the order of the sources, and the scan that found them, once there was one. */
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
 * Stores what a scan has found, in place of what an earlier one did (`before`). Of scans at once the last one counts. One call
 * per 25 repositories that have changed, and one per 100 that have gone.
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

/** Thousands of modules, and little enough to be read every few seconds: of those beyond nobody is told of a newer release. */
const latestBytes = 100_000

/** The newest version of each module, as JSON: one item tells whoever counts updates, and not the whole catalog. */
function latestText(repositories: readonly CatalogRepositoryRecord[]): string {
  const latest = [...choicesByModule(repositories)].flatMap(([id, offers]) => {
    const release = latestOf(offers)
    return release === undefined ? [] : [[id, release.version]]
  })
  return fitting(latest, latestBytes)
}

const Latest = z.object({ latest: jsonString(z.array(z.tuple([z.string(), z.string()]))).optional() })

/** The newest version of each module, by the item of the last scan; of none where that has not told. */
export const latestVersions = (scan: Item | undefined): ReadonlyMap<string, string> =>
  new Map(Latest.parse(scan ?? {}).latest)

/** An item holds 400 KB: less than so many bytes of each always fit. */
const [releasesBytes, othersBytes] = [330_000, 60_000]

function itemOf({ reference, place, releases, others = [] }: CatalogRepositoryRecord): Item {
  const known = others.length > 0 ? { others: fitting(others.slice(0, otherLimit), othersBytes) } : {}
  // Members in one order: what has not changed is the same text, and is not written again.
  const kept = fitting(
    releases.slice(0, releaseLimit).map((release) => CatalogRelease.parse(release)),
    releasesBytes,
  )
  return { ...keys.catalogRepository(reference), reference, place, releases: kept, ...known }
}

/** As JSON, as many of the first ones as have so many bytes. */
function fitting(all: readonly object[], limitBytes: number): string {
  let bytes = 0
  const texts = all.map((each) => JSON.stringify(each))
  return `[${texts.filter((text) => (bytes += Buffer.byteLength(text) + 1) < limitBytes).join()}]`
}
