import * as z from 'zod'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, type Item, patch, remove, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { log } from '../log.ts'
import { deleteSecret } from '../aws/secrets.ts'

/**
 * No transaction spans the table and Secrets Manager, so the table has a marker for every unused secret: created before
 * the secret, removed by the transaction that adopts it, and created again by the one that replaces it. The sweep deletes
 * the secrets of due markers.
 */

/** Longer than any request that writes a secret. */
const graceMs = 10 * 60_000

const OrphanedSecret = z.object({ name: z.string() })

/** Marks a secret as unused, before it is created or deleted. */
export const markOrphaned = (name: string): WriteItem =>
  create(keys.orphanedSecret(name), { name, ...keys.due(name, now() + graceMs) })

/** Removes the marker of a secret. Fails once the secret is being deleted. */
export const adopt = (name: string): WriteItem =>
  remove(keys.orphanedSecret(name), { pk: { present: true }, isGoing: { absent: true } })

/** Deletes a marked secret, then its marker. Two calls, and one to Secrets Manager. */
async function deleteOrphan(name: string): Promise<void> {
  // Prevents adoption. A missing marker means that the secret was adopted or deleted.
  if (await transact([patch(keys.orphanedSecret(name), { set: { isGoing: true } })])) return
  await deleteSecret(name)
  await transact([remove(keys.orphanedSecret(name))])
}

/** Same as `dispose`, but leaves errors to the sweep. */
export async function deleteOrphanQuietly(name: string): Promise<void> {
  try {
    await deleteOrphan(name)
  } catch (error) {
    log('warn', 'Failed to delete an orphaned secret; the sweep retries', { name, error: String(error) })
  }
}

/** Deletes the secret of a due marker. */
export const collectOrphans = (item: Item): Promise<void> => deleteOrphan(OrphanedSecret.parse(item).name)

export const isOrphanedSecret = ({ sk }: Item): boolean => sk === 'ORPHANED-SECRET'
