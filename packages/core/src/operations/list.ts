import { type JobStatus } from '@platform/contract/job'
import * as keys from '../db/keys.ts'
import { getMany } from '../db/table.ts'
import { type KeyPage, indexedKeys, type IndexRange, type Page, pageOfRange } from '../db/index-page.ts'
import { type OperationRecord, operationTypes, type OperationType, parseOperation } from './record.ts'

/** Only the platform organisation has operations, and few, so all of them can be read. */

const ofType = (organisationId: string, type: OperationType): IndexRange => ({
  index: 'gsi1',
  pk: keys.operationsOf(organisationId, type),
  newestFirst: true,
})

export async function pageOfType(
  organisationId: string,
  { type, status }: { type: OperationType; status?: JobStatus | undefined },
  { page, pageSize }: Page,
): Promise<{ jobs: OperationRecord[]; totalCount: number }> {
  const operationKeys = await indexedKeys(ofType(organisationId, type))
  const onPage = <Each>(all: readonly Each[]): Each[] => all.slice((page - 1) * pageSize, page * pageSize)
  if (status === undefined) {
    return { jobs: await readOperations(onPage(operationKeys)), totalCount: operationKeys.length }
  }
  const jobs = (await readOperations(operationKeys)).filter((operation) => operation.status === status)
  return { jobs: onPage(jobs), totalCount: jobs.length }
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
  const newestKeys = indexedKeys({ ...range, newestFirst: true, limit: end + operations.size })
  const [count, newest] = await Promise.all([total(), newestKeys])
  const jobs = newest.filter(({ id }) => !operations.has(id))
  return { keys: jobs.slice(offset, end), totalCount: jobs.length < end ? jobs.length : Math.max(count, end) }
}
