import type { buildApp } from 'fauxqs'
import type { JsonObject } from '../http/request.ts'

type Stores = NonNullable<NonNullable<Parameters<typeof buildApp>[0]>['stores']>

export type Store = Stores['sqsStore']
/** One queue with its waiting, delayed and in-flight messages. */
export type Queue = ReturnType<Store['createQueue']>
export type Message = Queue['messages'][number]
/** Writes every change of a queue to SQLite. */
export type Persistence = NonNullable<Store['persistence']>

/** One action: validates the input, changes the store, and returns or throws an `SqsError`. */
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
 * Loads the queues of fauxqs. Its public server listens on every address and includes S3 and SNS. The parts are not
 * exported and are loaded by file name, so the version is pinned.
 */
export async function loadFauxqs(): Promise<Library> {
  const home = import.meta.resolve('fauxqs')
  const load = (file: string) => import(new URL(file, home).href)
  const [{ SqsStore }, { PersistenceManager }, { SqsError }, contents] = await Promise.all([
    load('sqs/sqsStore.js'),
    load('persistence.js'),
    load('common/errors.js'),
    load('sqs/sqsTypes.js'),
  ])
  acceptEveryBody(contents.INVALID_MESSAGE_BODY_CHAR)
  const actions = actionNames.map(async (name): Promise<[string, Action]> => {
    const member = name.charAt(0).toLowerCase() + name.slice(1)
    return [name, (await load(`sqs/actions/${member}.js`))[member]]
  })
  return { Store: SqsStore, Persistence: PersistenceManager, SqsError, actions: new Map(await Promise.all(actions)) }
}

/** fauxqs checks single UTF-16 units and rejects every emoji; `validation.ts` checks code points instead. */
function acceptEveryBody(forbidden: RegExp) {
  forbidden.test = () => false
}
