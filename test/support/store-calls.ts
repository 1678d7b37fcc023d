import { client } from '@platform/core/db/table'

let count = 0
let waiting: { command: RegExp; action: () => Promise<unknown>; left: number } | undefined

client.middlewareStack.add(
  (next, context) => async (args) => {
    count++
    const due = waiting
    if (due?.command.test(context.commandName ?? '') && --due.left === 0) {
      waiting = undefined
      await due.action()
    }
    return next(args)
  },
  { step: 'initialize', name: 'storeCalls' },
)

export async function countStoreCalls(work: () => Promise<unknown>): Promise<number> {
  const before = count
  await work()
  return count - before
}

/**
 * Runs an action once before the next, or the `nth`, command of this kind reaches the store. Returns whether it ran.
 */
export function beforeCommand(command: RegExp, action: () => Promise<unknown>, nth = 1): () => boolean {
  const hook = { command, action, left: nth }
  waiting = hook
  return () => waiting !== hook
}

export interface StoreCall {
  command: string
  input: any
}

export interface CallHook {
  before: () => Promise<void>
  after: () => Promise<void>
}

/** `after` runs before the response is used. */
export function onStoreCall(hook: {
  before?: (call: StoreCall) => Promise<void>
  after?: (call: StoreCall, answer: any) => Promise<void>
}): Disposable {
  const name = crypto.randomUUID()
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const call = { command: context['commandName'] ?? '', input: args.input }
      await hook.before?.(call)
      const result = await next(args)
      await hook.after?.(call, result.output)
      return result
    },
    { step: 'initialize', name },
  )
  return { [Symbol.dispose]: () => void client.middlewareStack.remove(name) }
}

/**
 * Runs the work and fails all store calls from the n-th one: before it is sent, or after it has taken effect. Returns
 * whether the work made that many calls. `watchOthers` adds the calls of other services.
 */
export async function crashAtCall(
  n: number,
  when: 'before' | 'after',
  work: () => Promise<unknown>,
  watchOthers: (hook: CallHook) => Disposable | undefined = () => undefined,
): Promise<boolean> {
  let calls = 0
  const crash = new Error('The process has crashed.')
  const hook = {
    before: async () => {
      if ((when === 'before' ? ++calls : calls++) >= n) throw crash
    },
    after: async () => {
      if (when === 'after' && calls >= n) throw crash
    },
  }
  using hooks = new DisposableStack()
  hooks.use(onStoreCall(hook))
  hooks.use(watchOthers(hook))
  await work().catch(() => undefined)
  return calls >= n
}

const isTransaction = ({ command }: StoreCall): boolean => command.startsWith('TransactWrite')

export async function maxConcurrentTransactions(work: () => Promise<unknown>): Promise<number> {
  let [inFlight, most] = [0, 0]
  using _ = onStoreCall({
    before: async (call) => {
      if (isTransaction(call)) most = Math.max(most, ++inFlight)
    },
    after: async (call) => {
      if (isTransaction(call)) inFlight--
    },
  })
  await work()
  return most
}
