import { auditBook } from '../audit/projection.ts'
import { batchBook } from '../jobs/batches/projection.ts'
import { type Book, bookRecords } from '../outbox/run-projections.ts'
import { historyBook } from '../dashboard/history-projection.ts'
import { jobTotalsBook } from '../jobs/totals-projection.ts'
import { moduleBook } from '../modules/event-projection.ts'
import { notificationBook } from '../notifications/projection.ts'
import { oneAtATime } from '../lib/single-flight.ts'
import { announceRecords } from '../aws/queues.ts'
import { timelineBook } from '../clusters/timeline-projection.ts'
import { asOnlyOne } from '../outbox/lease.ts'
import { webhookBook } from '../webhooks/projection.ts'

/** Every book that the platform keeps. */
export const allBooks: readonly Book[] = [
  auditBook,
  batchBook,
  historyBook,
  jobTotalsBook,
  moduleBook,
  notificationBook,
  timelineBook,
  webhookBook,
]

/** Enters the records of an organisation into all books, unless somebody is at it who will look again. */
export const bookAll = oneAtATime(
  (organisationId) => asOnlyOne(organisationId, (endMs) => bookRecords(organisationId, allBooks, endMs)),
  announceRecords,
)
