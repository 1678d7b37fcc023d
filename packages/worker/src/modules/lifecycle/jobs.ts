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

const JobAnswer = z.object({ hasRun: z.boolean() })

/** Calls a background job of a module. Never throws. */
export async function runJob(
  runtime: ModuleRuntime,
  deployment: Deployment,
  jobId: string,
  timeoutMs: number,
): Promise<JobRun> {
  const path = `/jobs/${encodeURIComponent(jobId)}`
  const asked = await callControl(runtime, deployment, { method: 'POST', path, limitMs: timeoutMs, answer: JobAnswer })
  const { published } = asked
  if (!asked.isDone) return { outcome: 'Failed', message: asked.message, published }
  return { outcome: asked.body.hasRun ? 'Completed' : 'Skipped', published }
}
