import * as keys from '../db/keys.ts'
import { getMany } from '../db/table.ts'
import { type KeyPage, firstKeys, indexedKeys, type IndexRange, olderThan, pageOfRange } from '../db/index-page.ts'
import { type Page, pageOfItems, type Positioned } from '../db/paging.ts'
import { type OperationRecord, operationTypes, type OperationType, parseOperation } from './record.ts'

/** Only the platform organisation has operations. They are few, so all of them can be read. */

const ofType = (organisationId: string, type: OperationType): IndexRange => ({
  index: 'gsi1',
  pk: keys.operationsOf(organisationId, type),
  newestFirst: true,
})

export async function pageOfType(
  organisationId: string,
  type: OperationType,
  matches: ((operation: OperationRecord) => boolean) | undefined,
  page: Page,
): Promise<Positioned & { jobs: OperationRecord[]; totalCount: number }> {
  const operationKeys = await indexedKeys(ofType(organisationId, type))
  if (matches === undefined) {
    const { items: pageKeys, ...rest } = pageOfItems(operationKeys, page, ({ id }) => id)
    return { jobs: await readOperations(pageKeys), ...rest }
  }
  const matching = (await readOperations(operationKeys)).filter(matches)
  const { items: jobs, ...rest } = pageOfItems(matching, page, ({ id }) => id)
  return { jobs, ...rest }
}

async function readOperations(operationKeys: readonly keys.Key[]): Promise<OperationRecord[]> {
  const items = operationKeys.length === 0 ? [] : await getMany(operationKeys)
  return items.filter((item) => item !== undefined).map(parseOperation)
}

/** Reads all jobs from the newest one to the page, because the index cannot exclude operations. */
export async function pageWithoutOperations(
  organisationId: string,
  range: IndexRange,
  total: () => Promise<number>,
  page: Page,
): Promise<KeyPage> {
  const operationKeys = await Promise.all(operationTypes.map((type) => indexedKeys(ofType(organisationId, type))))
  const operations = new Set(operationKeys.flat().map(({ id }) => id))
  if (operations.size === 0) return pageOfRange(range, total, page)
  const offset = (page.page - 1) * page.pageSize
  const end = offset + page.pageSize
  const limit = end + operations.size + 1
  const newestKeys = indexedKeys({ ...olderThan(range, page), newestFirst: true, limit })
  const [count, newest] = await Promise.all([total(), newestKeys])
  const jobs = newest.filter(({ id }) => !operations.has(id))
  const isComplete = jobs.length < end && page.before === undefined
  return {
    ...firstKeys(jobs.slice(offset), page.pageSize),
    totalCount: isComplete ? jobs.length : Math.max(count, end),
  }
}
