import { client } from '@platform/core/db/table'

/** What the code under test writes into the store, seen where it leaves the process. */

let count = 0
let isStruck = false

const isWrite = (command: string): boolean => /^(Put|Update|Delete|BatchWrite|TransactWrite)/.test(command)

client.middlewareStack.add(
  (next, context) => async (args) => {
    const answer = await next(args)
    if (isWrite(context.commandName ?? '')) written()
    return answer
  },
  { step: 'initialize', name: 'countWrites' },
)

function written(): void {
  count++
  if (!isStruck) return
  isStruck = false
  throw new Error('The process died after its write.')
}

/** How many writes have happened so far. */
export const writes = (): number => count

/** Does some work whose first write happens, and nothing after it. Answers whether there was a write. */
export async function dyingAfterWrite(work: () => Promise<unknown>): Promise<boolean> {
  isStruck = true
  try {
    await work()
    return !isStruck
  } finally {
    isStruck = false
  }
}
