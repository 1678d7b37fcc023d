import { randomUUID } from 'node:crypto'
import { CreateTableCommand, type CreateTableCommandInput, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import * as documents from '@aws-sdk/lib-dynamodb'
import { keySchema } from '@platform/core/db/schema'
import { type DynamoDb, type DynamoDbOptions, startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { afterAll, beforeAll, vi } from 'vitest'
import { temporaryFolder } from '../../../support/temporary-folder.ts'

type Attributes = Record<string, unknown>
type Rest<T> = Partial<Omit<T, 'TableName'>>
type Update = Rest<documents.UpdateCommandInput>
type Query = Rest<documents.QueryCommandInput>
type TransactItems = NonNullable<documents.TransactWriteCommandInput['TransactItems']>

export function clientOf(endpoint: string, maxAttempts = 1): DynamoDBClient {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
  return new DynamoDBClient({ endpoint, region: 'eu-central-1', credentials, maxAttempts })
}

const attributes = ['pk', 'sk', 'g1pk', 'g1sk', 'g2pk']

/** Two indexes: `byG1` has a sort key and projects all attributes, `byG2` projects only keys. */
function tableDefinition(TableName: string): CreateTableCommandInput {
  return {
    TableName,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: attributes.map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
    KeySchema: keySchema('pk', 'sk'),
    GlobalSecondaryIndexes: [
      { IndexName: 'byG1', KeySchema: keySchema('g1pk', 'g1sk'), Projection: { ProjectionType: 'ALL' } },
      {
        IndexName: 'byG2',
        KeySchema: [{ AttributeName: 'g2pk', KeyType: 'HASH' }],
        Projection: { ProjectionType: 'KEYS_ONLY' },
      },
    ],
  }
}

export class TestTable {
  readonly name: string
  readonly client: DynamoDBClient
  readonly documents: documents.DynamoDBDocumentClient

  constructor(client: DynamoDBClient, name = `test-${randomUUID()}`) {
    this.name = name
    this.client = client
    this.documents = documents.DynamoDBDocumentClient.from(client)
  }

  create() {
    return this.client.send(new CreateTableCommand(tableDefinition(this.name)))
  }

  put(Item: Attributes, options: Rest<documents.PutCommandInput> = {}) {
    return this.documents.send(new documents.PutCommand({ TableName: this.name, Item, ...options }))
  }

  get(pk: string, sk: string, options: Rest<documents.GetCommandInput> = {}) {
    return this.documents.send(new documents.GetCommand({ TableName: this.name, Key: { pk, sk }, ...options }))
  }

  async item(pk: string, sk: string): Promise<Attributes | undefined> {
    return (await this.get(pk, sk, { ConsistentRead: true })).Item
  }

  update(pk: string, sk: string, UpdateExpression: string, values?: Attributes, options: Update = {}) {
    const expression = { UpdateExpression, ExpressionAttributeValues: values }
    return this.documents.send(
      new documents.UpdateCommand({ TableName: this.name, Key: { pk, sk }, ...expression, ...options }),
    )
  }

  delete(pk: string, sk: string, options: Rest<documents.DeleteCommandInput> = {}) {
    return this.documents.send(new documents.DeleteCommand({ TableName: this.name, Key: { pk, sk }, ...options }))
  }

  query(KeyConditionExpression: string, values: Attributes, options: Query = {}) {
    const expression = { KeyConditionExpression, ExpressionAttributeValues: values }
    return this.documents.send(new documents.QueryCommand({ TableName: this.name, ...expression, ...options }))
  }

  async all(condition: string, values: Attributes, options: Query = {}): Promise<Attributes[]> {
    const items: Attributes[] = []
    let ExclusiveStartKey: Attributes | undefined
    do {
      const page = await this.query(condition, values, { ...options, ExclusiveStartKey })
      items.push(...(page.Items ?? []))
      ExclusiveStartKey = page.LastEvaluatedKey
    } while (ExclusiveStartKey)
    return items
  }

  transact(TransactItems: TransactItems, options: Partial<documents.TransactWriteCommandInput> = {}) {
    return this.documents.send(new documents.TransactWriteCommand({ TransactItems, ...options }))
  }

  putMember(Item: Attributes, options: Rest<documents.PutCommandInput> = {}) {
    return { Put: { TableName: this.name, Item, ...options } }
  }

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

export function useStore({ onDisk = false, ...options }: DynamoDbOptions & { onDisk?: boolean } = {}): TestStore {
  const resources = new AsyncDisposableStack()
  const store: Partial<TestStore> = {}
  beforeAll(async () => {
    const folder = onDisk && { dataDir: resources.use(await temporaryFolder()).path }
    const database = await startDynamoDb({ ...options, ...folder })
    resources.defer(() => database.close())
    store.database = database
    store.table = new TestTable(clientOf(database.url))
    await store.table.create()
  })
  afterAll(() => resources.disposeAsync())
  return store as TestStore
}

export const eventually = (check: () => unknown): Promise<unknown> =>
  vi.waitFor(check, { timeout: 30_000, interval: 20 })

export const rejectionOf = (call: Promise<unknown>): Promise<Error & Record<string, any>> =>
  call.then(
    (output) => Promise.reject(new Error(`The call succeeded: ${JSON.stringify(output)}`)),
    (error) => error,
  )
