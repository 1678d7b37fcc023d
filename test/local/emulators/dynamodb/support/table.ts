import { randomUUID } from 'node:crypto'
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import type { CreateTableCommandInput } from '@aws-sdk/client-dynamodb'
import {
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  TransactWriteCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb'
import type {
  DeleteCommandInput,
  GetCommandInput,
  PutCommandInput,
  QueryCommandInput,
  TransactWriteCommandInput,
  UpdateCommandInput,
} from '@aws-sdk/lib-dynamodb'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import type { DynamoDb, DynamoDbOptions } from '@platform/local/emulators/dynamodb/server'
import { afterAll, beforeAll, vi } from 'vitest'

type Attributes = Record<string, unknown>
type Rest<T> = Partial<Omit<T, 'TableName'>>
export type TransactItems = NonNullable<TransactWriteCommandInput['TransactItems']>

export function clientOf(endpoint: string, maxAttempts = 1): DynamoDBClient {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
  return new DynamoDBClient({ endpoint, region: 'eu-central-1', credentials, maxAttempts })
}

const key = (hash: string, range?: string) => [
  { AttributeName: hash, KeyType: 'HASH' as const },
  ...(range ? [{ AttributeName: range, KeyType: 'RANGE' as const }] : []),
]

/** pk and sk; three indexes: `byG1` sorted with everything, `byG2` unsorted with a and b, `byG3` sorted by number, keys only. */
function tableDefinition(TableName: string): CreateTableCommandInput {
  return {
    TableName,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: ['pk', 'sk', 'g1pk', 'g1sk', 'g2pk', 'g3pk', 'g3n'].map((AttributeName) => ({
      AttributeName,
      AttributeType: AttributeName === 'g3n' ? 'N' : 'S',
    })),
    KeySchema: key('pk', 'sk'),
    GlobalSecondaryIndexes: [
      { IndexName: 'byG1', KeySchema: key('g1pk', 'g1sk'), Projection: { ProjectionType: 'ALL' } },
      {
        IndexName: 'byG2',
        KeySchema: key('g2pk'),
        Projection: { ProjectionType: 'INCLUDE', NonKeyAttributes: ['a', 'b'] },
      },
      { IndexName: 'byG3', KeySchema: key('g3pk', 'g3n'), Projection: { ProjectionType: 'KEYS_ONLY' } },
    ],
  }
}

/** A table of the test's own, spoken to through the SDK. */
export class TestTable {
  readonly name: string
  readonly client: DynamoDBClient
  readonly documents: DynamoDBDocumentClient

  constructor(client: DynamoDBClient, name = `test-${randomUUID()}`) {
    this.name = name
    this.client = client
    this.documents = DynamoDBDocumentClient.from(client)
  }

  create() {
    return this.client.send(new CreateTableCommand(tableDefinition(this.name)))
  }

  put(Item: Attributes, rest: Rest<PutCommandInput> = {}) {
    return this.documents.send(new PutCommand({ TableName: this.name, Item, ...rest }))
  }

  get(pk: string, sk: string, rest: Rest<GetCommandInput> = {}) {
    return this.documents.send(new GetCommand({ TableName: this.name, Key: { pk, sk }, ...rest }))
  }

  async item(pk: string, sk: string): Promise<Attributes | undefined> {
    return (await this.get(pk, sk, { ConsistentRead: true })).Item
  }

  update(pk: string, sk: string, UpdateExpression: string, values?: Attributes, rest: Rest<UpdateCommandInput> = {}) {
    return this.documents.send(
      new UpdateCommand({
        TableName: this.name,
        Key: { pk, sk },
        UpdateExpression,
        ExpressionAttributeValues: values,
        ...rest,
      }),
    )
  }

  delete(pk: string, sk: string, rest: Rest<DeleteCommandInput> = {}) {
    return this.documents.send(new DeleteCommand({ TableName: this.name, Key: { pk, sk }, ...rest }))
  }

  query(KeyConditionExpression: string, values: Attributes, rest: Rest<QueryCommandInput> = {}) {
    return this.documents.send(
      new QueryCommand({
        TableName: this.name,
        KeyConditionExpression,
        ExpressionAttributeValues: values,
        ...rest,
      }),
    )
  }

  /** All items of a query, over all its pages. */
  async all(condition: string, values: Attributes, rest: Rest<QueryCommandInput> = {}): Promise<Attributes[]> {
    const items: Attributes[] = []
    let ExclusiveStartKey: Attributes | undefined
    do {
      const page = await this.query(condition, values, { ...rest, ExclusiveStartKey })
      items.push(...(page.Items ?? []))
      ExclusiveStartKey = page.LastEvaluatedKey
    } while (ExclusiveStartKey)
    return items
  }

  transact(TransactItems: TransactItems, rest: Partial<TransactWriteCommandInput> = {}) {
    return this.documents.send(new TransactWriteCommand({ TransactItems, ...rest }))
  }

  putMember(Item: Attributes, rest: Rest<PutCommandInput> = {}) {
    return { Put: { TableName: this.name, Item, ...rest } }
  }

  /** Adds to the attribute `n`. */
  addMember(pk: string, sk: string, amount: number) {
    const ExpressionAttributeValues = { ':n': amount }
    return {
      Update: { TableName: this.name, Key: { pk, sk }, UpdateExpression: 'ADD n :n', ExpressionAttributeValues },
    }
  }
}

export interface TestStore {
  database: DynamoDb
  table: TestTable
}

/** A store with a table for all tests of a file. */
export function useStore(options: DynamoDbOptions = {}): TestStore {
  const store: Partial<TestStore> = {}
  beforeAll(async () => {
    store.database = await startDynamoDb(options)
    store.table = new TestTable(clientOf(store.database.url))
    await store.table.create()
  })
  afterAll(() => store.database?.close())
  return store as TestStore
}

const PATIENCE_MS = 30_000

/** Waits until the check passes. */
export function eventually(check: () => unknown): Promise<unknown> {
  return vi.waitFor(check, { timeout: PATIENCE_MS, interval: 20 })
}

/** The refusal of a call that must not succeed. */
export async function rejectionOf(call: Promise<unknown>): Promise<Error & Record<string, any>> {
  const outcome = await call.then(
    (answer) => ({ answer }),
    (error: Error & Record<string, any>) => ({ error }),
  )
  if ('error' in outcome) return outcome.error
  throw new Error(`The call succeeded: ${JSON.stringify(outcome.answer)}`)
}
