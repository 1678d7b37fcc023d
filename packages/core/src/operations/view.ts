import { type Job, type JobStep, type JobSummary } from '@platform/contract/job'
import { iso, optionalTimestamp } from '../clock.ts'
import { isOperationTerminal, type OperationRecord, type StoredStep } from './record.ts'

/** Operations as callers see them: jobs with steps. */

const stepView = ({ name, status, message, startedAtMs, completedAtMs }: StoredStep): JobStep => ({
  name,
  status,
  ...(message !== undefined && { message }),
  ...optionalTimestamp('startedAt', startedAtMs),
  ...optionalTimestamp('completedAt', completedAtMs),
})

/** The API representation in lists. */
export const operationSummary = (row: OperationRecord): JobSummary => ({
  id: row.id,
  type: row.type,
  status: row.status,
  ...(row.statusReason !== undefined && { statusReason: row.statusReason }),
  createdAt: iso(row.createdAtMs),
  ...optionalTimestamp('startedAt', row.startedAtMs),
  ...optionalTimestamp('completedAt', row.completedAtMs),
})

/** Operations never expire; the API requires a time. */
const keptMs = 24 * 3_600_000

/** The API representation with progress and outcome. */
export function operationView(row: OperationRecord): Job {
  const output = row.outcome ?? ''
  return {
    ...operationSummary(row),
    payload: row.payload,
    expiresAt: iso(row.createdAtMs + keptMs),
    steps: row.steps.map(stepView),
    ...(isOperationTerminal(row) && {
      result: {
        output,
        exitCode: row.status === 'Completed' ? 0 : 1,
        nodes: [],
        truncated: false,
        totalBytes: Buffer.byteLength(output),
      },
    }),
  }
}
