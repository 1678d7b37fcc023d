import type { FloorEvent } from './gateway.ts'

/** The jobs that a batch submission asks for, hardly looked at. */
export interface FloorJob {
  clusterId: string
  payload: { script: string }
}

const isJob = (job: { clusterId?: unknown; type?: unknown; payload?: { script?: unknown } }) =>
  typeof job?.clusterId === 'string' && job.type === 'InvokeScript' && typeof job.payload?.script === 'string'

export function jobsOf({ body = '' }: FloorEvent): FloorJob[] | undefined {
  const { jobs } = JSON.parse(body)
  return Array.isArray(jobs) && jobs.length <= 500 && jobs.every(isJob) ? jobs : undefined
}
