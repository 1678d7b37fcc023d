import { client } from '@platform/core/db/table'
import { isErrorCount } from '../support/store-calls.ts'

let count = 0

const isCallCount = (input: any): boolean => String(input.Key?.pk).startsWith('CALL-COUNT#')
/** Whether the write is the outbox record of denied calls, or of sign-ins with unknown names. */
const isRejectionEntry = (input: unknown): boolean => /access\.denied|Unknown user name/.test(JSON.stringify(input))

let failsNextWrite = false

client.middlewareStack.add(
  (next, context) => async (args) => {
    const result = await next(args)
    if (!/^(Put|Update|Delete|BatchWrite|TransactWrite)/.test(context.commandName ?? '')) return result
    // Some of these are written up to a minute after their request.
    if (isErrorCount(args.input) || isCallCount(args.input) || isRejectionEntry(args.input)) return result
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
