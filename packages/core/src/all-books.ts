import { auditBook } from './audit-book.ts'
import { batchBook } from './batch-book.ts'
import { type Book, bookRecords } from './books.ts'
import { jobTotalsBook } from './job-totals.ts'
import { joined } from './joined.ts'
import { notificationBook } from './notification-book.ts'
import { timelineBook } from './timeline-book.ts'
import { inTurn } from './turn.ts'
import { webhookBook } from './webhook-book.ts'

/** Every book that the platform keeps. */
export const allBooks: readonly Book[] = [
  auditBook,
  batchBook,
  jobTotalsBook,
  notificationBook,
  timelineBook,
  webhookBook,
]

/** Enters the records of an organisation into all books. Messages that name it at once share the work. */
export const bookAll = joined((organisationId) =>
  inTurn(organisationId, (endMs) => bookRecords(organisationId, allBooks, endMs)),
)
