import { auditProjection } from '../audit/projection.ts'
import { batchProjection } from '../jobs/batches/projection.ts'
import { type Projection, runProjections } from '../outbox/run-projections.ts'
import { historyProjection } from '../dashboard/history-projection.ts'
import { jobTotalsProjection } from '../jobs/totals-projection.ts'
import { moduleEventProjection } from '../modules/event-projection.ts'
import { notificationProjection } from '../notifications/projection.ts'
import { singleFlight } from '../lib/single-flight.ts'
import { enqueueProjections } from '../aws/queues.ts'
import { timelineProjection } from '../clusters/timeline-projection.ts'
import { withLease } from '../outbox/lease.ts'
import { webhookProjection } from '../webhooks/projection.ts'

/** Every book that the platform keeps. */
export const projections: readonly Projection[] = [
  auditProjection,
  batchProjection,
  historyProjection,
  jobTotalsProjection,
  moduleEventProjection,
  notificationProjection,
  timelineProjection,
  webhookProjection,
]

/** Enters the records of an organisation into all books, unless somebody is at it who will look again. */
export const projectOrganisation = singleFlight(
  (organisationId) => withLease(organisationId, (endMs) => runProjections(organisationId, projections, endMs)),
  enqueueProjections,
)
