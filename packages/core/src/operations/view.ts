import { type Job, type JobStep, type JobSummary } from '@platform/contract/job'
import { iso, when } from '../clock.ts'
import { isEnded, type OperationRow, type StoredStep } from './record.ts'

/** Operations as callers see them: jobs like others, with steps. */

const stepView = ({ name, status, message, startedAtMs, completedAtMs }: StoredStep): JobStep => ({
  name,
  status,
  ...(message !== undefined && { message }),
  ...when('startedAt', startedAtMs),
  ...when('completedAt', completedAtMs),
})

/** The wire form in lists. */
export const operationSummary = (row: OperationRow): JobSummary => ({
  id: row.id,
  type: row.type,
  status: row.status,
  ...(row.statusReason !== undefined && { statusReason: row.statusReason }),
  createdAt: iso(row.createdAtMs),
  ...when('startedAt', row.startedAtMs),
  ...when('completedAt', row.completedAtMs),
})

/** Operations are not given up for lateness: what nobody has done is done late. */
const keptMs = 24 * 3_600_000

/** The wire form, progress and outcome included. */
export function operationView(row: OperationRow): Job {
  const output = row.outcome ?? ''
  return {
    ...operationSummary(row),
    payload: row.payload,
    expiresAt: iso(row.createdAtMs + keptMs),
    steps: row.steps.map(stepView),
    ...(isEnded(row) && {
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
