import { isErrorCount, onStoreCall } from '../support/store-calls.ts'

let count = 0

const isCallCount = (input: any): boolean => String(input.Key?.pk).startsWith('CALL-COUNT#')
/** Whether the write is the outbox record of denied calls, or of sign-ins with unknown names. */
const isRejectionEntry = (input: unknown): boolean => /access\.denied|Unknown user name/.test(JSON.stringify(input))

let failsNextWrite = false

onStoreCall({
  after: async ({ command, input }) => {
    if (!/^(Put|Update|Delete|BatchWrite|TransactWrite)/.test(command)) return
    // Some of these are written up to a minute after their request.
    if (isErrorCount(input) || isCallCount(input) || isRejectionEntry(input)) return
    count++
    if (!failsNextWrite) return
    failsNextWrite = false
    throw new Error('The process died after its write.')
  },
})

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
