import { incompleteError, isApiError } from '../../api/api-error.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import type { FormValues } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'
import { fetchExistingIds, knownName } from '../clusters/cluster-queries.ts'
import { idsOf, maxPerRequest, partsOf, type Target } from '../clusters/label-queries.ts'

export interface Draft {
  script: string
  /** Selected nodes of the only cluster; undefined for all nodes. */
  nodeIds?: string[] | undefined
  timeoutSeconds?: number
}

/**
 * Returns a job without its cluster, and the limits of a batch. Throws `ApiError` if the script is empty or no node is
 * selected.
 */
export function requestOf({ script, nodeIds }: Draft, values: FormValues) {
  if (script.trim() === '') throw incompleteError('Enter a script.')
  if (nodeIds?.length === 0) throw incompleteError('Select at least one node.')
  const timeoutMinutes = wholeNumber(values['timeoutMinutes'])
  const deliverMinutes = wholeNumber(values['deliverWithinMinutes'])
  const maxConcurrency = wholeNumber(values['maxConcurrency'])
  const maxErrors = wholeNumber(values['maxErrors'])
  const { name = '', reason = '' } = values
  const job = {
    type: 'InvokeScript',
    payload: {
      script,
      ...(nodeIds !== undefined && { targetNodeIds: nodeIds }),
      ...(timeoutMinutes !== undefined && { timeoutSeconds: timeoutMinutes * 60 }),
    },
    ...(deliverMinutes !== undefined && { deliverWithinSeconds: deliverMinutes * 60 }),
    ...(name.trim() !== '' && { name: name.trim() }),
    ...(reason.trim() !== '' && { reason: reason.trim() }),
  }
  const limits = {
    ...(maxConcurrency !== undefined && { maxConcurrency }),
    ...(maxErrors !== undefined && { maxErrors }),
  }
  return { job, limits }
}

function wholeNumber(text = ''): number | undefined {
  const number = Number(text)
  return text.trim() === '' || !Number.isInteger(number) ? undefined : number
}

type BatchRequest = Omit<Schemas['BatchSubmission'], 'jobs' | 'target' | 'expectedCount'>

// The address of the result contains the ids of all batches.
const maxBatches = 50

interface Progress {
  batchIds: readonly string[]
  /** The clusters that are not submitted yet. */
  rest: string[]
}

/**
 * Submits batches of at most 500 clusters and returns their ids. `onProgress` is called after each of several batches,
 * so that the caller can continue after a failure.
 */
export async function submitBatches(
  request: BatchRequest,
  { target, count }: { target: Target; count: number },
  onProgress: (progress: Progress) => void,
): Promise<string[]> {
  if (count <= maxPerRequest) return [await submitBatch(request, target, count)]
  if (count > maxPerRequest * maxBatches) {
    throw incompleteError(
      `At most ${(maxPerRequest * maxBatches).toLocaleString('en')} clusters can be selected at once.`,
    )
  }
  const parts = partsOf(await idsOf({ target, count }))
  const batchIds: string[] = []
  for (const [index, part] of parts.entries()) {
    batchIds.push(await submitBatch(request, { clusterIds: part }, part.length))
    onProgress({ batchIds, rest: parts.slice(index + 1).flat() })
  }
  return batchIds
}

/** Submits one batch. Skips clusters that were removed since they were selected, and shows their names. */
async function submitBatch(request: BatchRequest, target: Target, expectedCount: number): Promise<string> {
  try {
    return (await unwrap(api.POST('/api/v1/jobs/batch', { body: { ...request, target, expectedCount } }))).batchId
  } catch (error) {
    const { clusterIds } = target
    if (clusterIds === undefined || !isApiError(error, 'cluster_forbidden')) throw error
    const existingClusterIds = await fetchExistingIds(clusterIds)
    const rest = clusterIds.filter((id) => existingClusterIds.has(id))
    if (rest.length === 0 || rest.length === clusterIds.length) throw error
    const removedIds = clusterIds.filter((id) => !existingClusterIds.has(id))
    showToast('Removed clusters were skipped', removedIds.map(knownName).join(', '))
    return submitBatch(request, { clusterIds: rest }, rest.length)
  }
}
