import type { Schemas } from '../../api/client.ts'

type Reason = NonNullable<Schemas['Job']['statusReason']>

const sentences: Record<Reason, string> = {
  cancelled_by_user: 'It was cancelled.',
  delivery_timeout: 'No relay picked it up in time. See whether the relay of the cluster is connected.',
  exit_nonzero: 'The script ended with an exit code other than 0.',
  execution_timeout: 'It ran longer than it was allowed to.',
  relay_rejected: 'The relay refused it. Its own log says why.',
  interrupted: 'The relay was stopped while the job ran. A script is never run twice by itself.',
  lease_lost: 'The relay was not heard of for too long while the job ran.',
  dead_lettered: 'The platform could not deliver it.',
  batch_error_limit: 'Too many other jobs of its batch had failed.',
  cluster_removed: 'Its cluster was removed.',
  module_operation_failed: 'The operation on the module failed. The steps say where.',
  update_failed: 'The update failed, and the platform went back by itself. The steps say where.',
}

/** Why a job ended as it did, as a sentence. */
export const reasonText = (reason: Reason): string => sentences[reason] ?? reason
