import type { Schemas } from '../../api/client.ts'

export type JobStatus = Schemas['Job']['status']

export const jobStatuses = ['Queued', 'Running', 'Completed', 'Failed', 'Cancelled'] as const satisfies JobStatus[]

export const isFinished = (status: JobStatus): boolean => status !== 'Queued' && status !== 'Running'

type Reason = NonNullable<Schemas['Job']['statusReason']>

const reasonTexts: Record<Reason, string> = {
  cancelled_by_user: 'Cancelled by a user.',
  delivery_timeout: 'No relay picked it up in time. Check that the cluster’s relay is connected.',
  exit_nonzero: 'The script exited with a non-zero code.',
  execution_timeout: 'It exceeded its execution timeout.',
  relay_rejected: 'The relay rejected it. See the relay’s log.',
  interrupted: 'The relay stopped while the job ran. Scripts are not rerun automatically.',
  lease_lost: 'The relay lost contact while the job ran.',
  dead_lettered: 'The platform could not deliver it.',
  batch_error_limit: 'Its batch reached the failure limit.',
  cluster_removed: 'Its cluster was removed.',
  module_operation_failed: 'The module operation failed. See the steps.',
  update_failed: 'The update failed and was rolled back. See the steps.',
}

export const reasonText = (reason: Reason): string => reasonTexts[reason] ?? reason
