import { type Deployment } from '@platform/core/modules/record'
import * as z from 'zod'
import { type ModuleRuntime } from '../../runtimes/port.ts'
import { type PublishedEvent } from '@platform/modules/protocol'
import { callControl } from './control-client.ts'

/** The result of a background job call. `Skipped`: the previous run has not ended. */
export interface JobRun {
  outcome: 'Completed' | 'Skipped' | 'Failed'
  /** The reason for `Failed`. */
  message?: string
  published: PublishedEvent[]
}

const JobResponse = z.object({ hasRun: z.boolean() })

/** Calls a background job of a module. Never throws. */
export async function runJob(
  runtime: ModuleRuntime,
  deployment: Deployment,
  jobId: string,
  timeoutMs: number,
): Promise<JobRun> {
  const path = `/jobs/${encodeURIComponent(jobId)}`
  const response = await callControl(runtime, deployment, {
    method: 'POST',
    path,
    limitMs: timeoutMs,
    schema: JobResponse,
  })
  const { published } = response
  if (!response.isDone) return { outcome: 'Failed', message: response.message, published }
  return { outcome: response.body.hasRun ? 'Completed' : 'Skipped', published }
}
