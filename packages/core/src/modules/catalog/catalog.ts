import * as z from 'zod'
import { latestOf, choicesByModule } from './select.ts'
import { CatalogRelease, CatalogRepositoryRecord, CatalogScanRecord } from './record.ts'
import * as keys from '../../db/keys.ts'
import { type Item, batchPut, queryAll, remove } from '../../db/table.ts'
import { transact } from '../../db/transact.ts'
import { jsonString } from '../../lib/validate.ts'
import { chunk } from '../../lib/async.ts'

export const releaseLimit = 200
/** The maximum number of digests stored for each repository in addition to its releases. */
const otherLimit = 150
const problemLimit = 50
const maxProblemLength = 500

export interface Catalog {
  /** In the order of the sources if they were read from the store. */
  repositories: readonly CatalogRepositoryRecord[]
  scan?: CatalogScanRecord
}

const inSourceOrder = (repositories: readonly CatalogRepositoryRecord[]): CatalogRepositoryRecord[] =>
  repositories.toSorted((a, b) => a.sourceIndex - b.sourceIndex || (a.reference < b.reference ? -1 : 1))

export async function readCatalog(): Promise<Catalog> {
  const items = await queryAll(keys.catalog())
  const scan = items.find(({ sk }) => sk === keys.catalogScan().sk)
  const repositories = items.filter((item) => item !== scan).map((item) => CatalogRepositoryRecord.parse(item))
  return {
    repositories: inSourceOrder(repositories),
    ...(scan && { scan: CatalogScanRecord.parse(scan) }),
  }
}

/**
 * Writes the scan and the repositories that differ from `before`, and removes the repositories that are no longer
 * listed.
 */
export async function storeCatalog({ repositories, scan }: Required<Catalog>, before: Catalog): Promise<void> {
  const references = new Set(repositories.map(({ reference }) => reference))
  const removedRepositories = before.repositories.filter(({ reference }) => !references.has(reference))
  const problems = scan.problems.slice(0, problemLimit).map((problem) => problem.slice(0, maxProblemLength))
  const storedItems = new Set(before.repositories.map((repository) => JSON.stringify(itemOf(repository))))
  const newItems = repositories.map(itemOf).filter((item) => !storedItems.has(JSON.stringify(item)))
  const latestJson = latestVersionsJson(inSourceOrder(repositories))
  await batchPut([...newItems, { ...keys.catalogScan(), ...scan, problems, latest: latestJson }])
  const removals = removedRepositories.map(({ reference }) => remove(keys.catalogRepository(reference)))
  for (const batch of chunk(removals, 100)) await transact(batch)
}

/**
 * Small enough for frequent reads, and sufficient for thousands of modules. Updates of modules beyond the limit are not
 * counted.
 */
const maxLatestBytes = 100_000

/** The result is stored with the scan, so that counting updates reads one item instead of the catalog. */
function latestVersionsJson(repositories: readonly CatalogRepositoryRecord[]): string {
  const latestEntries = [...choicesByModule(repositories)].flatMap(([id, choices]) => {
    const release = latestOf(choices)
    return release === undefined ? [] : [[id, release.version]]
  })
  return jsonWithin(latestEntries, maxLatestBytes)
}

const Latest = z.object({ latest: jsonString(z.array(z.tuple([z.string(), z.string()]))).optional() })

export const latestVersions = (scan: Item | undefined): ReadonlyMap<string, string> =>
  new Map(Latest.parse(scan ?? {}).latest)

/** An item has at most 400 KiB. */
const [maxReleasesBytes, maxOthersBytes] = [330_000, 60_000]

function itemOf({ reference, sourceIndex, releases, others = [] }: CatalogRepositoryRecord): Item {
  const othersField = others.length > 0 ? { others: jsonWithin(others.slice(0, otherLimit), maxOthersBytes) } : {}
  // Parsing normalises the member order, so that unchanged repositories are detected and not written.
  const newestJson = jsonWithin(
    releases.slice(0, releaseLimit).map((release) => CatalogRelease.parse(release)),
    maxReleasesBytes,
  )
  return { ...keys.catalogRepository(reference), reference, sourceIndex, releases: newestJson, ...othersField }
}

/** Omits the element whose addition exceeds the limit, and all later ones. */
function jsonWithin(elements: readonly object[], limitBytes: number): string {
  let bytes = 0
  const texts = elements.map((element) => JSON.stringify(element))
  return `[${texts.filter((text) => (bytes += Buffer.byteLength(text) + 1) < limitBytes).join()}]`
}
