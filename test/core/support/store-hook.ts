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
