import type { buildApp } from 'fauxqs'
import type { JsonObject } from '../http/request.ts'

type Stores = NonNullable<NonNullable<Parameters<typeof buildApp>[0]>['stores']>

export type Store = Stores['sqsStore']
export type Queue = ReturnType<Store['createQueue']>
export type Message = Queue['messages'][number]
/** Writes every change of a queue to SQLite. */
export type Persistence = NonNullable<Store['persistence']>

/** Validates the input, changes the store, and returns the output or throws an `SqsError`. */
export type Action = (
  input: JsonObject,
  store: Store,
  request: { headers: { host: string; authorization: string } },
) => JsonObject | Promise<JsonObject>

interface Library {
  Store: new () => Store
  Persistence: new (dataDir: string) => Persistence
  SqsError: new () => Error & { code: string; statusCode: number }
  actions: ReadonlyMap<string, Action>
}

/** Supported actions. The library's files in `sqs/actions` have these names with a lower-case first letter. */
const actionNames = [
  'CreateQueue',
  'GetQueueUrl',
  'ListQueues',
  'GetQueueAttributes',
  'SetQueueAttributes',
  'SendMessage',
  'SendMessageBatch',
  'ReceiveMessage',
  'DeleteMessage',
  'DeleteMessageBatch',
  'ChangeMessageVisibility',
  'ChangeMessageVisibilityBatch',
]

/**
 * Loads the queues of fauxqs without its server, which listens on every address and includes S3 and SNS. fauxqs does
 * not export these files, so they are loaded by name and the version is pinned.
 */
export async function loadFauxqs(): Promise<Library> {
  const libraryUrl = locateLibrary()
  const load = (file: string) => import(new URL(file, libraryUrl).href)
  const [{ SqsStore }, { PersistenceManager }, { SqsError }, sqsTypes] = await Promise.all([
    load('sqs/sqsStore.js'),
    load('persistence.js'),
    load('common/errors.js'),
    load('sqs/sqsTypes.js'),
  ])
  acceptEveryBody(sqsTypes.INVALID_MESSAGE_BODY_CHAR)
  const actions = actionNames.map(async (name): Promise<[string, Action]> => {
    const member = name.charAt(0).toLowerCase() + name.slice(1)
    return [name, (await load(`sqs/actions/${member}.js`))[member]]
  })
  return { Store: SqsStore, Persistence: PersistenceManager, SqsError, actions: new Map(await Promise.all(actions)) }
}

/** The package of the platform contains these files as bundles, because the library has many other dependencies. */
function locateLibrary(): string {
  try {
    return import.meta.resolve('fauxqs')
  } catch {
    return new URL('../../../../../dist/fauxqs/', import.meta.url).href
  }
}

/** fauxqs checks single UTF-16 units and rejects every emoji. validation.ts checks code points instead. */
function acceptEveryBody(forbiddenPattern: RegExp) {
  forbiddenPattern.test = () => false
}
