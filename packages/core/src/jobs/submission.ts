import { InvokeScriptPayload, type JobSubmission, jobTypes } from '@platform/contract/job'
import { platformError } from '../error.ts'
import { parseBody } from '../lib/validate.ts'

/** What a submitted job must be, whether it comes alone or in a batch (D26, D35). */

const payloadBytes = 262_144

/** A payload that is valid, and its JSON, which is what its relay gets. */
export interface SubmittedPayload extends InvokeScriptPayload {
  text: string
}

/**
 * The payload of a submission that lies `under` a path of the body. Throws `unknown_job_type`, `job_type_not_submittable`,
 * `validation_failed` or `payload_too_large`.
 */
export function payloadOf({ type, payload }: JobSubmission, under: readonly PropertyKey[] = []): SubmittedPayload {
  if (type !== 'InvokeScript') {
    throw platformError(
      (jobTypes as readonly string[]).includes(type) ? 'job_type_not_submittable' : 'unknown_job_type',
    )
  }
  const parsed = parseBody(InvokeScriptPayload, payload, [...under, 'payload'])
  const text = JSON.stringify(parsed)
  if (Buffer.byteLength(text) > payloadBytes) throw platformError('payload_too_large')
  return { ...parsed, text }
}
