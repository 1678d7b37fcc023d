import { client } from '@platform/core/db/table'

/** What the code under test asks of the store, seen where it leaves the process. */

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

/** How many calls some work makes. */
export async function countStoreCalls(work: () => Promise<unknown>): Promise<number> {
  const before = count
  await work()
  return count - before
}

/**
 * Does something else once, just before the next command of this kind, or the `nth` from now, reaches the store. Answers
 * whether it has happened.
 */
export function beforeCommand(command: RegExp, action: () => Promise<unknown>, nth = 1): () => boolean {
  const hook = { command, action, left: nth }
  waiting = hook
  return () => waiting !== hook
}

/** A call to the store, as the code under test makes it. */
export interface StoreCall {
  command: string
  input: any
}

/** Runs something at calls to the store until it is disposed of: before each is made, and before its answer is seen. */
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

const isTransaction = ({ command }: StoreCall): boolean => command.startsWith('TransactWrite')

/** How many transactions some work has under way at once, at the most. */
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
