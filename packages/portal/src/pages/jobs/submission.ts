import { ApiError } from '../../api/api-error.ts'
import type { Schemas } from '../../api/client.ts'
import type { FormValues } from '../../ui/form.tsx'

/** What is about to be run, and where. */
export interface Draft {
  script: string
  clusterIds: string[]
  /** Of the one cluster; absent for all of its nodes. */
  nodeIds?: string[] | undefined
  timeoutSeconds?: number
}

type Submission = Schemas['JobSubmission']
type Limits = Pick<Schemas['BatchSubmission'], 'maxConcurrency' | 'maxErrors'>

/** The jobs that a draft stands for, one for each cluster. Throws where something is missing that the platform would miss. */
export function submissionsOf(draft: Draft, values: FormValues): { jobs: Submission[]; limits: Limits } {
  const { script, clusterIds, nodeIds } = draft
  if (script.trim() === '') throw missing('Write a script first.')
  if (clusterIds.length === 0) throw missing('Choose at least one cluster to run the script on.')
  if (nodeIds?.length === 0) throw missing('Choose at least one node, or all of them.')
  const minutes = wholeNumber(values['timeoutMinutes'])
  const payload = {
    script,
    ...(nodeIds !== undefined && { targetNodeIds: nodeIds }),
    ...(minutes !== undefined && { timeoutSeconds: minutes * 60 }),
  }
  const waiting = wholeNumber(values['deliverWithinMinutes'])
  const jobs = clusterIds.map((clusterId) => ({
    clusterId,
    type: 'InvokeScript',
    payload,
    ...(waiting !== undefined && { deliverWithinSeconds: waiting * 60 }),
  }))
  const maxConcurrency = wholeNumber(values['maxConcurrency'])
  const maxErrors = wholeNumber(values['maxErrors'])
  return {
    jobs,
    limits: { ...(maxConcurrency !== undefined && { maxConcurrency }), ...(maxErrors !== undefined && { maxErrors }) },
  }
}

const missing = (message: string): ApiError => new ApiError(400, { error: 'incomplete', message })

/** A number as a field holds it; undefined where it is empty. */
function wholeNumber(text = ''): number | undefined {
  const number = Number(text)
  return text.trim() === '' || !Number.isInteger(number) ? undefined : number
}
