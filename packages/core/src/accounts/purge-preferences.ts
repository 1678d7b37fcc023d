import * as z from 'zod'
import * as keys from '../db/keys.ts'
import { removeAll } from '../db/remove-all.ts'
import { type Item, remove } from '../db/table.ts'
import { transact } from '../db/transact.ts'

const Removed = z.object({ organisationId: z.string(), userId: z.string() })

/** Clears away what a removed user had set for itself, and what says that it is to be done, last. Three calls per 50. */
export async function purgePreferences(marker: Item): Promise<void> {
  const { organisationId, userId } = Removed.parse(marker)
  await removeAll(keys.preferences(organisationId, userId))
  await transact([remove(keys.userPurge(userId))])
}
