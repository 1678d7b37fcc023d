import type { Job, JobStep, JobSummary } from '@platform/contract/job'
import { jobTitle } from '@platform/contract/job-title'
import { iso, optionalTimestamp } from '../clock.ts'
import { submitterView } from '../submitter.ts'
import { isOperationTerminal, type OperationRecord, type StoredStep } from './record.ts'

const stepView = ({ name, status, message, startedAtMs, completedAtMs }: StoredStep): JobStep => ({
  name,
  status,
  ...(message !== undefined && { message }),
  ...optionalTimestamp('startedAt', startedAtMs),
  ...optionalTimestamp('completedAt', completedAtMs),
})

export const operationSummary = (operation: OperationRecord): JobSummary => ({
  id: operation.id,
  type: operation.type,
  status: operation.status,
  ...(operation.statusReason !== undefined && { statusReason: operation.statusReason }),
  createdAt: iso(operation.createdAtMs),
  title: jobTitle(operation),
  createdBy: submitterView(operation),
  ...optionalTimestamp('startedAt', operation.startedAtMs),
  ...optionalTimestamp('completedAt', operation.completedAtMs),
})

/** Operations never expire, but the API requires an expiry time. */
const expiryMs = 24 * 3_600_000

export function operationView(operation: OperationRecord): Job {
  const output = operation.outcome ?? ''
  return {
    ...operationSummary(operation),
    payload: operation.payload,
    expiresAt: iso(operation.createdAtMs + expiryMs),
    steps: operation.steps.map(stepView),
    ...(isOperationTerminal(operation) && {
      result: {
        output,
        exitCode: operation.status === 'Completed' ? 0 : 1,
        nodes: [],
        truncated: false,
        totalBytes: Buffer.byteLength(output),
      },
    }),
  }
}
