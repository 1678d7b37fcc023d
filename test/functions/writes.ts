import { client } from '@platform/core/db/table'
import { isErrorCount } from '../support/store-calls.ts'

let count = 0

const isCallCount = (input: any): boolean => String(input.Key?.pk).startsWith('CALL-COUNT#')
let failsNextWrite = false

client.middlewareStack.add(
  (next, context) => async (args) => {
    const result = await next(args)
    if (!/^(Put|Update|Delete|BatchWrite|TransactWrite)/.test(context.commandName ?? '')) return result
    // Ignores counters of errors and calls, and outbox records about denied calls.
    if (isErrorCount(args.input) || isCallCount(args.input)) return result
    if (JSON.stringify(args.input).includes('access.denied')) return result
    count++
    if (!failsNextWrite) return result
    failsNextWrite = false
    throw new Error('The process died after its write.')
  },
  { step: 'initialize', name: 'countWrites' },
)

export const writes = (): number => count

export async function failAfterWrite(work: () => Promise<unknown>): Promise<boolean> {
  failsNextWrite = true
  try {
    await work()
    return !failsNextWrite
  } finally {
    failsNextWrite = false
  }
}
