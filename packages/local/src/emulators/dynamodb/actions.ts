import { actionOf, MAX_ITEM_BYTES } from './dynalite.ts'
import type { ActionName, Data, Callback, PageReader } from './dynalite.ts'
import type { Input, Item, TableDescription } from './types.ts'

type ItemAction = 'putItem' | 'updateItem' | 'deleteItem' | 'getItem'

interface ItemOutcome {
  output: Input
  after: Item | undefined
}

const options = { maxItemSize: MAX_ITEM_BYTES, createTableMs: 0 }
const notFoundError = Object.assign(new Error('Not found'), { name: 'NotFoundError' })

/** Actions run synchronously, so an action has exclusive access to its item or table without a lock. */
function lock(_key: string, run: (release: <T>(done: T) => T) => void): void {
  run((done) => done)
}

/** Runs an action on one item synchronously. Throws the error of the action. */
export function runItemAction(
  action: ItemAction,
  data: Data,
  table: TableDescription,
  item: Item | undefined,
): ItemOutcome {
  const outcome: { error?: Error | null; output?: Input; after: Item | undefined } = { after: item }
  const itemDb = {
    lock,
    get: (_key: string, done: Callback<Item>) => (item ? done(null, item) : done(notFoundError)),
    put: (_key: string, value: Item, done: Callback<void>) => {
      outcome.after = value
      done(null)
    },
    del: (_key: string, done: Callback<void>) => {
      outcome.after = undefined
      done(null)
    },
  }
  const store = { options, getTable: tableGetter(table), getItemDb: () => itemDb }
  actionOf(action)(store, data, (error, output) => Object.assign(outcome, { error, output }))
  if (outcome.error) throw outcome.error
  if (!outcome.output) throw new Error(`${action} did not complete synchronously`)
  return { output: outcome.output, after: outcome.after }
}

export function runPageAction(
  action: 'query' | 'scan',
  data: Data,
  table: TableDescription,
  readPage: PageReader,
): Promise<Input> {
  return runAction(action, { getTable: tableGetter(table), getItemDb: () => undefined, readPage }, data)
}

/** Returns the description of a new table, with the status CREATING as in DynamoDB. */
export async function describeNewTable(data: Data): Promise<TableDescription> {
  const tableDb = {
    awsRegion: 'local',
    awsAccountId: '000000000000',
    lock,
    get: (_key: string, done: Callback<void>) => done(notFoundError),
    put: (_key: string, _table: object, done: Callback<void>) => done(null),
  }
  const output = await runAction('createTable', { options, tableDb }, data)
  return structuredClone(output.TableDescription)
}

function runAction(action: ActionName, store: object, data: Data): Promise<Input> {
  return new Promise((resolve, reject) => {
    actionOf(action)(store, data, (error, output) => (error ? reject(error) : resolve(output ?? {})))
  })
}

function tableGetter(table: TableDescription) {
  return (_name: string, done: Callback<TableDescription>) => done(null, table)
}
