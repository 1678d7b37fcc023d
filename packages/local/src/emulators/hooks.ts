import type { Changes, CommitLog } from './dynamodb/commit-log.ts'
import type { Database } from './dynamodb/database.ts'
import type { Input } from './dynamodb/types.ts'
import type { AwsCall, ControlRoutes } from './http/service.ts'
import type { JsonObject } from './http/request.ts'
import type { Queue } from './sqs/fauxqs.ts'

/** Records of index entries: a value to put, or null to delete, by key. */
export type IndexChanges = [key: string, value: unknown][]

/** Writes the entries of global indexes. */
export interface IndexWriter {
  /** Adds the entries to the changes of their item, now or later. */
  stage: (changes: Changes, entries: IndexChanges) => void
  /** Writes all pending entries. */
  drain: () => Promise<void>
  close: () => void
}

/** Lets tests inject faults; `npm start` sets no hook. A hook throws `NoResponse` to leave a call without a response. */
export interface DynamoDbHooks {
  /** Runs in place of an operation; `run` performs it. */
  intercept?: (operation: string, input: Input, run: (input: Input) => Promise<Input>) => Promise<Input>
  /** Replaces the writer of global indexes. */
  openIndexes?: (database: Database, commits: CommitLog, report: (error: unknown) => void) => Promise<IndexWriter>
  /** Routes beside the AWS protocol. */
  control?: ControlRoutes
}

/** Hooks of the SQS emulator; see `DynamoDbHooks`. */
export interface SqsHooks {
  /** Runs in place of a call of `queue`; `run` performs it. */
  intercept?: (call: AwsCall, run: () => Promise<JsonObject>, queue: Queue | undefined) => Promise<JsonObject>
  control?: ControlRoutes
}

/** The exports of a module of hooks. */
export interface EmulatorHooks {
  dynamoDb?: DynamoDbHooks
  sqs?: SqsHooks
}
