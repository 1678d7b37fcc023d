import { type CreateTableCommandInput } from '@aws-sdk/client-dynamodb'

/** The table as the runner and the deployment create it: one table, four indexes that hold keys only. */
const tableAttributes = [
  'pk',
  'sk',
  'gsi1pk',
  'gsi1sk',
  'gsi2pk',
  'gsi2sk',
  'gsi3pk',
  'gsi3sk',
  'duepk',
  'duesk',
]
const tableIndexes = ['gsi1', 'gsi2', 'gsi3', 'due'] as const
export const ttlAttribute = 'ttl'

/** The request that creates the table. */
export const createTableInput = (TableName: string): CreateTableCommandInput => ({
  TableName,
  BillingMode: 'PAY_PER_REQUEST',
  AttributeDefinitions: tableAttributes.map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
  KeySchema: keySchema('pk', 'sk'),
  GlobalSecondaryIndexes: tableIndexes.map((IndexName) => ({
    IndexName,
    KeySchema: keySchema(`${IndexName}pk`, `${IndexName}sk`),
    Projection: { ProjectionType: 'KEYS_ONLY' },
  })),
})

const keySchema = (hash: string, range: string) => [
  { AttributeName: hash, KeyType: 'HASH' as const },
  { AttributeName: range, KeyType: 'RANGE' as const },
]
