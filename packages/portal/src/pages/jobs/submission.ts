import { ApiError } from '../../api/api-error.ts'
import type { Schemas } from '../../api/client.ts'
import type { FormValues } from '../../ui/form.tsx'

export interface Draft {
  script: string
  clusterIds: string[]
  /** Selected nodes of the only cluster; undefined for all nodes. */
  nodeIds?: string[] | undefined
  timeoutSeconds?: number
}

type Submission = Schemas['BatchJob']
type Limits = Pick<Schemas['BatchSubmission'], 'maxConcurrency' | 'maxErrors'>
type Purpose = Pick<Schemas['BatchSubmission'], 'name' | 'reason'>

/** Creates a job for each cluster. Throws `ApiError` if required input is missing. */
export function submissionsOf(
  draft: Draft,
  values: FormValues,
): { jobs: Submission[]; limits: Limits; purpose: Purpose } {
  const { script, clusterIds, nodeIds } = draft
  if (script.trim() === '') throw incomplete('Enter a script.')
  if (clusterIds.length === 0) throw incomplete('Select at least one cluster.')
  if (nodeIds?.length === 0) throw incomplete('Select at least one node.')
  const timeoutMinutes = wholeNumber(values['timeoutMinutes'])
  const payload = {
    script,
    ...(nodeIds !== undefined && { targetNodeIds: nodeIds }),
    ...(timeoutMinutes !== undefined && { timeoutSeconds: timeoutMinutes * 60 }),
  }
  const deliverMinutes = wholeNumber(values['deliverWithinMinutes'])
  const jobs = clusterIds.map((clusterId) => ({
    clusterId,
    type: 'InvokeScript',
    payload,
    ...(deliverMinutes !== undefined && { deliverWithinSeconds: deliverMinutes * 60 }),
  }))
  const maxConcurrency = wholeNumber(values['maxConcurrency'])
  const maxErrors = wholeNumber(values['maxErrors'])
  return {
    jobs,
    purpose: { ...textOf('name', values), ...textOf('reason', values) },
    limits: { ...(maxConcurrency !== undefined && { maxConcurrency }), ...(maxErrors !== undefined && { maxErrors }) },
  }
}

const incomplete = (message: string): ApiError => new ApiError(400, { error: 'incomplete', message })

const textOf = (name: 'name' | 'reason', values: FormValues) =>
  (values[name] ?? '').trim() === '' ? {} : { [name]: values[name]?.trim() }

function wholeNumber(text = ''): number | undefined {
  const number = Number(text)
  return text.trim() === '' || !Number.isInteger(number) ? undefined : number
}
