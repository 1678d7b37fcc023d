import { describeNewTable } from './actions.ts'
import { validate } from './dynalite.ts'
import { dynamoError, validationError } from './errors.ts'
import type { Store } from './store.ts'
import type { Input, TableDescription } from './types.ts'

const DEFAULT_LIMIT = 100

/** Returns CREATING as DynamoDB does, although the table is available immediately. */
export async function createTable(store: Store, input: Input): Promise<Input> {
  const data = validate('createTable', input)
  if (store.catalog.find(data.TableName)) throw inUseError(`Table already exists: ${data.TableName}`)
  const description = await describeNewTable(data)
  description.DeletionProtectionEnabled = input.DeletionProtectionEnabled === true
  const active: TableDescription = structuredClone(description)
  active.TableStatus = 'ACTIVE'
  for (const index of active.GlobalSecondaryIndexes ?? []) index.IndexStatus = 'ACTIVE'
  if (store.catalog.find(data.TableName)) throw inUseError(`Table already exists: ${data.TableName}`)
  await store.catalog.save({ description: active })
  return { TableDescription: { ...description, TableStatus: 'CREATING' } }
}

export async function deleteTable(store: Store, input: Input): Promise<Input> {
  const { TableName } = validate('deleteTable', input)
  const storedTable = store.catalog.requireTable(TableName)
  if (storedTable.description.TableStatus !== 'ACTIVE') throw inUseError(`Table is being changed: ${TableName}`)
  if (storedTable.description.DeletionProtectionEnabled) {
    const advice = 'To delete the table, disable deletion protection first.'
    throw validationError(`Resource cannot be deleted as it is currently protected against deletion. ${advice}`)
  }
  const description: TableDescription = { ...storedTable.description, TableStatus: 'DELETING' }
  await store.catalog.save({ ...storedTable, description })
  store.work.start(store, TableName)
  return { TableDescription: description }
}

export function describeTable(store: Store, input: Input): Input {
  const { TableName } = validate('describeTable', input)
  return { Table: store.catalog.requireTable(TableName).description }
}

export function listTables(store: Store, input: Input): Input {
  const data = validate('listTables', input)
  const start = data.ExclusiveStartTableName ?? ''
  const limit = data.Limit ?? DEFAULT_LIMIT
  const names = store.catalog.names().filter((name) => name > start)
  const page = names.slice(0, limit)
  return { TableNames: page, ...(names.length > limit && { LastEvaluatedTableName: page.at(-1) }) }
}

function inUseError(message: string) {
  return dynamoError('ResourceInUseException', message)
}
