import type { CreateTableCommandInput } from '@aws-sdk/client-dynamodb'

/** The deployment and the one-machine platform create the same table. */
const tableAttributes = ['pk', 'sk', 'id', 'gsi1pk', 'gsi2pk', 'gsi3pk', 'duepk', 'duesk']

export const tableIndexes = {
  gsi1: ['gsi1pk', 'id'],
  gsi2: ['gsi2pk', 'id'],
  gsi3: ['gsi3pk', 'id'],
  due: ['duepk', 'duesk'],
} as const
export const ttlAttribute = 'ttl'

/** Increase this number with every incompatible change of stored items or data folders. */
export const layoutVersion = 12

export const createTableInput = (TableName: string): CreateTableCommandInput => ({
  TableName,
  BillingMode: 'PAY_PER_REQUEST',
  AttributeDefinitions: tableAttributes.map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
  KeySchema: keySchema('pk', 'sk'),
  GlobalSecondaryIndexes: Object.entries(tableIndexes).map(([IndexName, [hash, range]]) => ({
    IndexName,
    KeySchema: keySchema(hash, range),
    Projection: { ProjectionType: 'KEYS_ONLY' },
  })),
})

export const keySchema = (hash: string, range: string) => [
  { AttributeName: hash, KeyType: 'HASH' as const },
  { AttributeName: range, KeyType: 'RANGE' as const },
]
