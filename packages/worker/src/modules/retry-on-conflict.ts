import { type ConditionFailure } from '@platform/core/db/transact'
import { retryOnConflict } from '@platform/core/db/offset-list'

/**
 * Makes a change whose first step decides whether it may happen at all, and whose others may be refused because the claims of
 * paths, which all modules share, have changed since they were read: then it is made anew.
 */
export async function retryOnConflictFor(
  attempt: () => Promise<ConditionFailure | undefined>,
): Promise<ConditionFailure | undefined> {
  const { refusal } = await retryOnConflict(async () => {
    const refusal = await attempt()
    return refusal === undefined || refusal.step === 0 ? { refusal } : undefined
  })
  return refusal
}
