import { createRequire } from 'node:module'
import { BoundedCache } from '@platform/core/lib/bounded-cache'
import { itemSize } from './item-size.ts'
import { keepTrees } from './syntax-trees.ts'
import type { AwsError } from './errors.ts'
import type { Input, Item, KeySchemaElement, TableDescription } from './types.ts'

/*
 * Uses the validation, expressions and actions of dynalite, but not its storage, locks, streams and server. The
 * required modules are internals of dynalite, so the version is checked.
 */
const require = createRequire(import.meta.url)
const SUPPORTED_VERSION = '4.0.0'
const { version }: { version: string } = require('dynalite/package.json')
if (version !== SUPPORTED_VERSION) throw new Error(`dynalite ${SUPPORTED_VERSION} is required, found ${version}`)

export const MAX_ITEM_BYTES = 400 * 1024

export type Callback<T> = (error: Error | null, value?: T) => void
type Action = (store: object, data: Data, done: Callback<Input>) => void
export type ActionName = 'putItem' | 'updateItem' | 'deleteItem' | 'getItem' | 'query' | 'scan' | 'createTable'
type RequestName = ActionName | 'batchGetItem' | 'batchWriteItem' | 'deleteTable' | 'describeTable' | 'listTables'

/** A validated request. Members whose names begin with an underscore contain parsed expressions. */
export interface Data extends Input {
  TableName: string
  Key?: Item
  Item?: Item
  AttributesToGet?: string[]
  ConsistentRead?: boolean
  IndexName?: string
  Limit?: number
  _projection?: { paths: unknown[] }
  _filter?: { expression: unknown }
}

export interface PageRequest {
  table: TableDescription
  data: Data
  range: { gt?: string; gte?: string; lt?: string; lte?: string; reverse?: boolean }
  isLocalIndex: boolean
  fetchesItems: boolean
  startKeyNames: string[]
}

export type PageReader = (request: PageRequest) => Promise<Input>

interface DynaliteDb {
  createKey: (item: Item, table: TableDescription, schema?: KeySchemaElement[]) => string
  createIndexKey: (item: Item, table: TableDescription, schema: KeySchemaElement[]) => string
  validateItem: (item: Item, table: TableDescription) => AwsError | undefined
  validateKey: (key: Item, table: TableDescription) => AwsError | undefined
  matchesExprFilter: (item: Item, expression: unknown) => boolean
  matchesFilter: (item: Item, filter: unknown, operator: unknown) => boolean
  mapPaths: (paths: unknown[], item: Item) => Item
  hashPrefix: (value: string, type: string) => string
  toRangeStr: (value: string, type: string) => string
  itemSize: (item: Item) => number
  updateIndexes: (store: object, table: object, before: object, after: object, done: Callback<void>) => void
  queryTable: (
    store: { readPage: PageReader },
    table: TableDescription,
    data: Data,
    range: PageRequest['range'],
    isLocalIndex: boolean | undefined,
    fetchesItems: boolean,
    startKeyNames: string[],
    done: Callback<Input>,
  ) => Promise<void>
}

interface Rules {
  types: object
  custom?: unknown
}

interface Validations {
  checkTypes: (data: Input, types: object) => Data
  checkValidations: (data: Data, types: object, custom: unknown, store: object) => void
}

const db: DynaliteDb = require('dynalite/db')
const validations: Validations = require('dynalite/validations')
for (const name of ['condition', 'update', 'projection']) keepTrees(require(`dynalite/db/${name}Parser`))
const rules = new Map<RequestName, Rules>()
const actions = new Map<ActionName, Action>()

/** Keeps the parts of row keys that contain a hash key, because dynalite computes a digest for each of them. */
const hashParts = new BoundedCache<string>(10_000)

db.createKey = (item, table, schema = table.KeySchema) =>
  schema
    .map(({ AttributeName }, index) => {
      const type = table.AttributeDefinitions.find((each) => each.AttributeName === AttributeName)!.AttributeType
      const value = item[AttributeName]![type]!
      return index === 0 ? hashPartOf(value, type) : `${db.toRangeStr(value, type)}/`
    })
    .join('')

function hashPartOf(value: string, type: string): string {
  const name = `${type}${value}`
  const keptPart = hashParts.get(name)
  if (keptPart !== undefined) return keptPart
  const part = `${db.hashPrefix(value, type)}/${db.toRangeStr(value, type)}/`
  hashParts.set(name, part)
  return part
}

// dynalite appends 24 bits of a digest to an index key, so items with equal index keys can overwrite each other.
db.createIndexKey = (item, table, schema) => db.createKey(item, table, schema) + db.createKey(item, table)
// dynalite counts UTF-16 units; DynamoDB counts bytes.
db.itemSize = itemSize
// staging.ts writes index rows, and page-operations.ts reads pages.
db.updateIndexes = (_store, _table, _before, _after, done) => done(null)
db.queryTable = async (store, table, data, range, isLocalIndex, fetchesItems, startKeyNames, done) => {
  const request = { table, data, range, isLocalIndex: isLocalIndex === true, fetchesItems, startKeyNames }
  const page = await store.readPage(request).catch(asError)
  if (page instanceof Error) done(page)
  else done(null, page)
}

export const { createKey, createIndexKey, validateItem, validateKey, matchesExprFilter, matchesFilter, mapPaths } = db

/** Validates a request and parses its expressions. Throws an error in the format of AWS. */
export function validate(name: RequestName, input: Input): Data {
  const { types, custom } = loadCached(rules, name, () => require(`dynalite/validations/${name}`))
  const data = validations.checkTypes({ ...input }, types)
  validations.checkValidations(data, types, custom, { options: { maxItemSize: MAX_ITEM_BYTES } })
  return data
}

export function actionOf(name: ActionName): Action {
  return loadCached(actions, name, () => require(`dynalite/actions/${name}`))
}

function loadCached<Name, Value>(cache: Map<Name, Value>, name: Name, load: () => Value): Value {
  const value = cache.get(name) ?? load()
  cache.set(name, value)
  return value
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
