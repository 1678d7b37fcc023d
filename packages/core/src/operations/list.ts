import * as keys from '../db/keys.ts'
import { getMany } from '../db/table.ts'
import { firstKeys, indexedKeys, type IndexRange, type KeyPage, pageOfRange, rangeBefore } from '../db/index-page.ts'
import { type Page, pageOfItems, type Positioned } from '../db/paging.ts'
import { type OperationRecord, operationTypes, type OperationType, parseOperation } from './record.ts'

/** Only the platform organisation has operations. They are few, so all of them can be read. */

const rangeOfType = (organisationId: string, type: OperationType): IndexRange => ({
  index: 'gsi1',
  pk: keys.operationsOf(organisationId, type),
  isNewestFirst: true,
})

export async function pageOfType(
  organisationId: string,
  type: OperationType,
  matches: ((operation: OperationRecord) => boolean) | undefined,
  page: Page,
): Promise<Positioned & { jobs: OperationRecord[]; totalCount: number }> {
  const operationKeys = await indexedKeys(rangeOfType(organisationId, type))
  if (matches === undefined) {
    const { items: pageKeys, ...rest } = pageOfItems(operationKeys, page, ({ id }) => id)
    return { jobs: await readOperations(pageKeys), ...rest }
  }
  const matchingOperations = (await readOperations(operationKeys)).filter(matches)
  const { items: jobs, ...rest } = pageOfItems(matchingOperations, page, ({ id }) => id)
  return { jobs, ...rest }
}

async function readOperations(operationKeys: readonly keys.Key[]): Promise<OperationRecord[]> {
  const items = operationKeys.length === 0 ? [] : await getMany(operationKeys)
  return items.filter((item) => item !== undefined).map(parseOperation)
}

/** If operations exist, reads the keys of all jobs from the newest one to the page, because the index includes both. */
export async function pageWithoutOperations(
  organisationId: string,
  range: IndexRange,
  readTotal: () => Promise<number>,
  page: Page,
): Promise<KeyPage> {
  const operationKeys = await Promise.all(operationTypes.map((type) => indexedKeys(rangeOfType(organisationId, type))))
  const operationIds = new Set(operationKeys.flat().map(({ id }) => id))
  if (operationIds.size === 0) return pageOfRange(range, readTotal, page)
  const offset = (page.page - 1) * page.pageSize
  const end = offset + page.pageSize
  const limit = end + operationIds.size + 1
  const newestRead = indexedKeys({ ...rangeBefore(range, page), isNewestFirst: true, limit })
  const [total, newestKeys] = await Promise.all([readTotal(), newestRead])
  const jobKeys = newestKeys.filter(({ id }) => !operationIds.has(id))
  const isComplete = jobKeys.length < end && page.before === undefined
  return {
    ...firstKeys(jobKeys.slice(offset), page.pageSize),
    totalCount: isComplete ? jobKeys.length : Math.max(total, end),
  }
}
