import { pause, type Refusal } from '@platform/core/db/table'
import { contended } from '@platform/core/fault'

const attempts = 12

/**
 * Makes a change whose first step decides whether it may happen at all, and whose others may be refused because the claims of
 * paths, which all modules share, have changed since they were read: then it is made anew.
 */
export async function againstOthers(attempt: () => Promise<Refusal | undefined>): Promise<Refusal | undefined> {
  for (let count = 0; count < attempts; count++) {
    if (count > 0) await pause(count)
    const refusal = await attempt()
    if (refusal === undefined || refusal.step === 0) return refusal
  }
  throw contended()
}
