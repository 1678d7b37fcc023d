import { mergeGroups } from '@platform/contract/merge-groups'
import { queryOptions, useQueries } from '@tanstack/react-query'
import { allPages } from '../../api/all-pages.ts'
import { isApiError } from '../../api/api-error.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'

export type Group = Schemas['JobGroup']

/** Returns a short text for a group, such as `287 Completed, exit code 0`. */
export const groupText = ({ count, status, statusReason, exitCode }: Group): string => {
  const reasons = statusReason === undefined || statusReason === 'exit_nonzero' ? [] : [statusReason]
  const codes = exitCode === null ? [] : [`exit code ${exitCode}`]
  return [`${count.toLocaleString('en')} ${status}`, ...reasons, ...codes].join(', ')
}

const groupsKey = (batchId: string) => ['batches', 'groups', batchId]

const groupsQuery = (batchId: string) =>
  queryOptions({
    queryKey: groupsKey(batchId),
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/jobs/batch/{batchId}/groups', { params: { path: { batchId } }, signal })),
    refetchInterval: (query) => (query.state.data?.pending === 0 ? false : pollEvery(5)(query)),
  })

/** Polls the groups of equal results of all batches together. The data is undefined until all are loaded. */
export const useGroups = (batchIds: readonly string[]) =>
  useQueries({
    queries: batchIds.map(groupsQuery),
    combine: (results) => {
      const parts = results.flatMap(({ data }) => data ?? [])
      return {
        data: parts.length === batchIds.length ? mergeGroups(parts) : undefined,
        error: results.find(({ error }) => error !== null)?.error ?? null,
        refetch: () => Promise.all(results.map(({ refetch }) => refetch())),
      }
    },
  })

/** Reads all clusters of a group, and skips batches without the group. */
export async function clustersOf(batchIds: readonly string[], group: string): Promise<Schemas['GroupCluster'][]> {
  const clustersIn = (batchId: string) =>
    allPages((query) => {
      const params = { path: { batchId, group }, query }
      return unwrap(api.GET('/api/v1/jobs/batch/{batchId}/groups/{group}/clusters', { params }))
    })
  const foundClusters: Schemas['GroupCluster'][] = []
  for (const batchId of batchIds) {
    try {
      foundClusters.push(...(await clustersIn(batchId)))
    } catch (error) {
      if (!isApiError(error, 'group_not_found')) throw error
    }
  }
  return foundClusters
}

/** Reads the results of all jobs of the batches, for an export. `onProgress` receives the number of results so far. */
export async function readResults(
  batchIds: readonly string[],
  onProgress: (count: number) => void,
): Promise<Schemas['JobOutcome'][]> {
  const results: Schemas['JobOutcome'][] = []
  for (const batchId of batchIds)
    await allPages(async (query) => {
      const params = { path: { batchId }, query }
      const page = await unwrap(api.GET('/api/v1/jobs/batch/{batchId}/results', { params }))
      results.push(...page.items)
      onProgress(results.length)
      return page
    })
  return results
}
