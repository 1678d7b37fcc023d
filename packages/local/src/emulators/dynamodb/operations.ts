import { batchGetItem } from './batch-get.ts'
import { batchWriteItem } from './batch-write.ts'
import { deleteItem, getItem, putItem, updateItem } from './item-operations.ts'
import { query, scan } from './page-operations.ts'
import type { Store } from './store.ts'
import { createTable, deleteTable, describeTable, listTables } from './table-operations.ts'
import { describeTimeToLive, updateTimeToLive } from './time-to-live.ts'
import { transactWriteItems } from './transact-write.ts'
import type { Input, Usage } from './types.ts'

/** Returns the response or throws an `AwsError`, and adds the consumed capacity to `usage`. */
type Operation = (store: Store, input: Input, usage: Usage) => Input | Promise<Input>

export const operations = new Map<string, Operation>(
  Object.entries({
    BatchGetItem: batchGetItem,
    BatchWriteItem: batchWriteItem,
    CreateTable: createTable,
    DeleteItem: deleteItem,
    DeleteTable: deleteTable,
    DescribeTable: describeTable,
    DescribeTimeToLive: describeTimeToLive,
    GetItem: getItem,
    ListTables: listTables,
    PutItem: putItem,
    Query: query,
    Scan: scan,
    TransactWriteItems: transactWriteItems,
    UpdateItem: updateItem,
    UpdateTimeToLive: updateTimeToLive,
  }),
)
