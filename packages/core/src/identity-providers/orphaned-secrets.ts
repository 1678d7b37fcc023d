import * as z from 'zod'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, type Item, patch, remove, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { log } from '../log.ts'
import { deleteSecret } from '../aws/secrets.ts'

/**
 * No transaction spans the table and Secrets Manager. The table therefore has a marker for every unused secret: written
 * before a new secret, removed by the transaction that adopts it, and restored by the one that replaces it. The sweep
 * deletes secrets that a crashed process left behind.
 */

/** Longer than any request that writes a secret. */
const graceMs = 10 * 60_000

const Unused = z.object({ name: z.string() })

/** Marks a secret as unused, before it is written or deleted. */
export const markOrphaned = (name: string): WriteItem =>
  create(keys.orphanedSecret(name), { name, ...keys.due(name, now() + graceMs) })

/** Removes the marker of a secret. Fails once the secret is being deleted. */
export const adopt = (name: string): WriteItem =>
  remove(keys.orphanedSecret(name), { pk: { present: true }, isGoing: { absent: true } })

/** Deletes a marked secret, then its marker. Two calls, and one to Secrets Manager. */
async function dispose(name: string): Promise<void> {
  // Prevents adoption from now on. Without a marker it was adopted or deleted.
  if (await transact([patch(keys.orphanedSecret(name), { set: { isGoing: true } })])) return
  await deleteSecret(name)
  await transact([remove(keys.orphanedSecret(name))])
}

/** Same as `dispose`, but leaves errors to the sweep. */
export async function deleteOrphanQuietly(name: string): Promise<void> {
  try {
    await dispose(name)
  } catch (error) {
    log('warn', 'Failed to delete an orphaned secret; the sweep retries', { name, error: String(error) })
  }
}

/** Called by the sweep for a due marker. */
export const collectOrphans = (item: Item): Promise<void> => dispose(Unused.parse(item).name)

export const isOrphanedSecret = ({ sk }: Item): boolean => sk === 'ORPHANED-SECRET'
