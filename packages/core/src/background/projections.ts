import { activeJobsProjection } from '../accounts/active-jobs.ts'
import { auditProjection } from '../audit/projection.ts'
import { batchProjection } from '../jobs/batches/projection.ts'
import { type Projection, runProjections, withLease } from '../outbox/run-projections.ts'
import { historyProjection } from '../dashboard/history-projection.ts'
import { jobTotalsProjection } from '../jobs/totals-projection.ts'
import { moduleEventProjection } from '../modules/event-projection.ts'
import { notificationProjection } from '../notifications/projection.ts'
import { singleFlight } from '../lib/async.ts'
import { enqueueProjections } from '../aws/queues.ts'
import { timelineProjection } from '../clusters/timeline-projection.ts'
import { webhookProjection } from '../webhooks/projection.ts'

export const projections: readonly Projection[] = [
  activeJobsProjection,
  auditProjection,
  batchProjection,
  historyProjection,
  jobTotalsProjection,
  moduleEventProjection,
  notificationProjection,
  timelineProjection,
  webhookProjection,
]

/** If another worker holds the lease, that worker runs the projections again before it releases it. */
export const projectOrganisation = singleFlight(
  (organisationId) => withLease(organisationId, (endMs) => runProjections(organisationId, projections, endMs)),
  enqueueProjections,
)
