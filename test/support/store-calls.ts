import { client } from '@platform/core/db/client'

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
export async function callsOf(work: () => Promise<unknown>): Promise<number> {
  const before = count
  await work()
  return count - before
}

/**
 * Does something else once, just before the next command of this kind, or the `nth` from now, reaches the store. Answers
 * whether it has happened.
 */
export function justBefore(command: RegExp, action: () => Promise<unknown>, nth = 1): () => boolean {
  const mine = { command, action, left: nth }
  waiting = mine
  return () => waiting !== mine
}
