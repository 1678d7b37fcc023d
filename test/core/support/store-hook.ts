import { client } from '@platform/core/db/client'

/** A call to the store, as the code under test makes it. */
export interface StoreCall {
  command: string
  input: any
}

/** Runs something at calls to the store until it is disposed of: before each is made, and before its answer is seen. */
export function atStoreCalls(hook: {
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
export async function transactionsAtOnce(work: () => Promise<unknown>): Promise<number> {
  let [underWay, most] = [0, 0]
  using _ = atStoreCalls({
    before: async (call) => {
      if (isTransaction(call)) most = Math.max(most, ++underWay)
    },
    after: async (call) => {
      if (isTransaction(call)) underWay--
    },
  })
  await work()
  return most
}
