import { auditBook } from '../audit/book.ts'
import { batchBook } from '../batch/book.ts'
import { type Book, bookRecords } from './books.ts'
import { historyBook } from '../history/book.ts'
import { jobTotalsBook } from '../job/totals.ts'
import { moduleBook } from '../module/book.ts'
import { notificationBook } from '../notification/book.ts'
import { oneAtATime } from './one-at-a-time.ts'
import { announceRecords } from '../queue.ts'
import { timelineBook } from '../cluster/timeline-book.ts'
import { asOnlyOne } from './turn.ts'
import { webhookBook } from '../webhook/book.ts'

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
