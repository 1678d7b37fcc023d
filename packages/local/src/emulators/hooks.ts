import type { Changes, CommitLog } from './dynamodb/commit-log.ts'
import type { Database } from './dynamodb/database.ts'
import type { Input } from './dynamodb/types.ts'
import type { AwsCall, ControlRoutes } from './http/service.ts'
import type { JsonObject } from './http/request.ts'
import type { Queue } from './sqs/fauxqs.ts'

/** Key and value of index rows: a value to put, or null to delete. */
export type IndexChanges = [key: string, value: unknown][]

export interface IndexWriter {
  /** Adds the rows to the changes of their item, or writes them later. */
  stage: (changes: Changes, entries: IndexChanges) => void
  /** Writes all pending rows. */
  drain: () => Promise<void>
  close: () => void
}

/** Lets tests inject faults; `npm start` sets no hook. A hook throws `NoResponse` to leave a call unanswered. */
export interface DynamoDbHooks {
  /** Called in place of each operation; `run` performs the operation. */
  intercept?: (operation: string, input: Input, run: (input: Input) => Promise<Input>) => Promise<Input>
  openIndexes?: (database: Database, commits: CommitLog, report: (error: unknown) => void) => Promise<IndexWriter>
  control?: ControlRoutes
}

/** See `DynamoDbHooks`. */
export interface SqsHooks {
  /** Called in place of each call; `run` performs the call. `queue` is undefined unless the call names a queue. */
  intercept?: (call: AwsCall, run: () => Promise<JsonObject>, queue: Queue | undefined) => Promise<JsonObject>
  control?: ControlRoutes
}

export interface EmulatorHooks {
  dynamoDb?: DynamoDbHooks
  sqs?: SqsHooks
}
