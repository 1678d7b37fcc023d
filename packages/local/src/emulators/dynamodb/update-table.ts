import { validate } from './dynalite.ts'
import { dynamoError, validationError } from './errors.ts'
import type { Store } from './store.ts'
import { inUse } from './table-operations.ts'
import type { AttributeDefinition, Input, SecondaryIndex, TableDescription } from './types.ts'

const SUPPORTED = new Set([
  'TableName',
  'AttributeDefinitions',
  'DeletionProtectionEnabled',
  'GlobalSecondaryIndexUpdates',
])

interface IndexUpdate {
  Create?: SecondaryIndex
  Delete?: { IndexName: string }
}

/** Changes deletion protection, and adds or deletes a global index. Rejects other changes. */
export async function updateTable(store: Store, input: Input): Promise<Input> {
  const { TableName } = validate('describeTable', { TableName: input.TableName })
  const unsupported = Object.keys(input).filter((name) => !SUPPORTED.has(name))
  if (unsupported.length > 0) throw validationError(`UpdateTable of ${unsupported.join(', ')} is not supported here`)
  const { description } = store.catalog.existing(TableName)
  if (description.TableStatus !== 'ACTIVE') throw inUse(`Table is being changed: ${TableName}`)
  const changed = withChanges(description, input)
  await store.catalog.update(TableName, () => ({ description: changed }))
  store.work.start(store, TableName)
  return { TableDescription: changed }
}

function withChanges(description: TableDescription, input: Input): TableDescription {
  const changed = structuredClone(description)
  const isProtected = input.DeletionProtectionEnabled
  if (isProtected !== undefined) changed.DeletionProtectionEnabled = isProtected === true
  const updates: IndexUpdate[] = input.GlobalSecondaryIndexUpdates ?? []
  if (updates.length > 1) {
    const message = 'Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table'
    throw dynamoError('LimitExceededException', message)
  }
  for (const update of updates) {
    if (update.Create) addIndex(changed, update.Create, input.AttributeDefinitions ?? [])
    else if (update.Delete) markDeleted(changed, update.Delete.IndexName)
    else throw validationError('Only Create and Delete of a global secondary index are supported here')
    changed.TableStatus = 'UPDATING'
  }
  return changed
}

/** Validates the changed table like a new one. */
function addIndex(table: TableDescription, index: SecondaryIndex, definitions: AttributeDefinition[]): void {
  const known = new Set(table.AttributeDefinitions.map(({ AttributeName }) => AttributeName))
  table.AttributeDefinitions.push(...definitions.filter(({ AttributeName }) => !known.has(AttributeName)))
  const indexes = [...(table.GlobalSecondaryIndexes ?? []), index]
  validate('createTable', {
    TableName: table.TableName,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: table.AttributeDefinitions,
    KeySchema: table.KeySchema,
    GlobalSecondaryIndexes: indexes.map(({ IndexName, KeySchema, Projection }) => ({
      IndexName,
      KeySchema,
      Projection,
    })),
  })
  const { IndexName, KeySchema, Projection } = index
  const state = {
    IndexStatus: 'CREATING' as const,
    Backfilling: true,
    IndexArn: `${table.TableArn}/index/${IndexName}`,
  }
  table.GlobalSecondaryIndexes = [
    ...(table.GlobalSecondaryIndexes ?? []),
    { IndexName, KeySchema, Projection, ...state },
  ]
}

function markDeleted(table: TableDescription, indexName: string): void {
  const index = table.GlobalSecondaryIndexes?.find(({ IndexName }) => IndexName === indexName)
  if (!index) throw dynamoError('ResourceNotFoundException', 'Requested resource not found')
  index.IndexStatus = 'DELETING'
}
