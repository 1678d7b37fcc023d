import * as z from 'zod'
import * as keys from '../db/keys.ts'
import { removeAll, transact } from '../db/transact.ts'
import { type Item, remove } from '../db/table.ts'

const UserPurge = z.object({ organisationId: z.string(), userId: z.string() })

/** Deletes the marker last, so that the next sweep continues an interrupted purge. */
export async function purgePreferences(marker: Item): Promise<void> {
  const { organisationId, userId } = UserPurge.parse(marker)
  await removeAll(keys.preferences(organisationId, userId))
  await transact([remove(keys.userPurge(userId))])
}
