import { elapsedMs } from '../clock.ts'
import { activeJobsProjection } from '../accounts/active-jobs.ts'
import { auditProjection } from '../audit/projection.ts'
import { batchProjection } from '../jobs/batches/projection.ts'
import { type Projection, runProjections } from '../outbox/run-projections.ts'
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

/** Leaves time for the last run within a function's timeout of 30 seconds. */
const maxWorkMs = 15_000

/** Runs the projections of an organisation. If time runs out, enqueues a message that continues the work. */
export const projectOrganisation = singleFlight(async (organisationId) => {
  const isDone = await runProjections(organisationId, projections, elapsedMs() + maxWorkMs)
  if (!isDone) await enqueueProjections(organisationId)
}, enqueueProjections)
