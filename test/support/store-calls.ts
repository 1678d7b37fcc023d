import { decode } from '@platform/core/db/expression'
import { client } from '@platform/core/db/table'

export async function countStoreCalls(work: () => Promise<unknown>): Promise<number> {
  let count = 0
  using _ = onStoreCall({ before: async (call) => void (isErrorCount(call.input) || count++) })
  await work()
  return count
}

/**
 * Whether a call writes the count of unexpected errors. The platform writes it up to a second after the failed request.
 */
export const isErrorCount = (input: any): boolean => String(input.Key?.pk).startsWith('VERSION-ERRORS#')

let waitingHook: Disposable | undefined

/**
 * Runs an action once, before the `nth` matching command is sent. The returned function returns whether the command was
 * reached. Replaces the previous hook.
 */
export function beforeCommand(command: RegExp, action: () => Promise<unknown>, nth = 1): () => boolean {
  waitingHook?.[Symbol.dispose]()
  let callsLeft = nth
  const hook = onStoreCall({
    before: async (call) => {
      if (!command.test(call.command) || --callsLeft !== 0) return
      hook[Symbol.dispose]()
      await action()
    },
  })
  waitingHook = hook
  return () => callsLeft <= 0
}

export interface StoreCall {
  command: string
  input: any
}

export interface CallHook {
  before: () => Promise<void>
  after: () => Promise<void>
}

const attributeTypes = new Set(['B', 'BOOL', 'L', 'M', 'N', 'NULL', 'S', 'SS'])
const isAttribute = (value: any): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.keys(value).length === 1 &&
  attributeTypes.has(Object.keys(value)[0] ?? '')

/** Decodes all items within a request or response. */
function decodeItems(value: any): any {
  if (Array.isArray(value)) return value.map(decodeItems)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value)
  if (fields.length > 0 && fields.every(([, field]) => isAttribute(field))) return decode(value)
  return Object.fromEntries(fields.map(([name, field]) => [name, decodeItems(field)]))
}

/** `after` runs before the caller receives the response. */
export function onStoreCall(hook: {
  before?: (call: StoreCall) => Promise<void>
  after?: (call: StoreCall, response: any) => Promise<void>
}): Disposable {
  const name = crypto.randomUUID()
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const call = { command: context['commandName'] ?? '', input: decodeItems(args.input) }
      await hook.before?.(call)
      const result = await next(args)
      await hook.after?.(call, decodeItems(result.output))
      return result
    },
    { step: 'initialize', name },
  )
  // The client may have cached its steps.
  client.destroy()
  return {
    [Symbol.dispose]: () => {
      client.middlewareStack.remove(name)
      client.destroy()
    },
  }
}

/**
 * Runs the work and fails the store call at this position and all later ones. With `after`, the call at this position
 * takes effect before it fails. Returns whether the work made that many calls. `watchOthers` adds the calls of other
 * services.
 */
export async function crashAtCall(
  position: number,
  when: 'before' | 'after',
  work: () => Promise<unknown>,
  watchOthers: (hook: CallHook) => Disposable | undefined = () => undefined,
): Promise<boolean> {
  let calls = 0
  const crash = new Error('The process has crashed.')
  const hook = {
    before: async () => {
      if ((when === 'before' ? ++calls : calls++) >= position) throw crash
    },
    after: async () => {
      if (when === 'after' && calls >= position) throw crash
    },
  }
  using hooks = new DisposableStack()
  hooks.use(onStoreCall(hook))
  hooks.use(watchOthers(hook))
  await work().catch(() => undefined)
  return calls >= position
}

const isTransaction = ({ command }: StoreCall): boolean => command.startsWith('TransactWrite')

export async function maxConcurrentTransactions(work: () => Promise<unknown>): Promise<number> {
  let [inFlight, maxInFlight] = [0, 0]
  using _ = onStoreCall({
    before: async (call) => {
      if (isTransaction(call)) maxInFlight = Math.max(maxInFlight, ++inFlight)
    },
    after: async (call) => {
      if (isTransaction(call)) inFlight--
    },
  })
  await work()
  return maxInFlight
}
