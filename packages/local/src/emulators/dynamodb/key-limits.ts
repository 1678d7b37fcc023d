import { validationError } from './errors.ts'
import type { AwsError } from './errors.ts'
import { indexesOf } from './indexes.ts'
import type { Item, KeySchemaElement, TableDescription } from './types.ts'

const MAX_HASH_BYTES = 2048
const MAX_RANGE_BYTES = 1024

/** Checks keys for errors that dynalite does not detect: keys that are too long, and empty index keys. */
export function keyError(table: TableDescription, item: Item): AwsError | undefined {
  const longKey = table.KeySchema.find((key) => isTooLong(key, item))
  if (longKey) return tooLongError(longKey)
  for (const { index } of indexesOf(table)) {
    for (const key of index.KeySchema) {
      if (isEmpty(key, item)) return emptyKeyError(index.IndexName, key.AttributeName)
      if (isTooLong(key, item)) return tooLongError(key)
    }
  }
  return undefined
}

function isEmpty(key: KeySchemaElement, item: Item): boolean {
  const value = item[key.AttributeName]
  return value?.S === '' || value?.B === ''
}

function isTooLong(key: KeySchemaElement, item: Item): boolean {
  const value = item[key.AttributeName]
  const limit = key.KeyType === 'HASH' ? MAX_HASH_BYTES : MAX_RANGE_BYTES
  if (value?.S !== undefined) return Buffer.byteLength(value.S) > limit
  return value?.B !== undefined && Buffer.byteLength(value.B, 'base64') > limit
}

function emptyKeyError(indexName: string, attribute: string): AwsError {
  return validationError(
    'One or more parameter values are not valid. A value specified for a secondary index key is not supported. ' +
      'The AttributeValue for a key attribute cannot contain an empty string value. ' +
      `IndexName: ${indexName}, IndexKey: ${attribute}`,
  )
}

/** DynamoDB's message also has no space before `2048`. */
function tooLongError(key: KeySchemaElement): AwsError {
  return validationError(
    key.KeyType === 'HASH'
      ? 'One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes'
      : 'One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes',
  )
}
