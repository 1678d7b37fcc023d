import * as z from 'zod'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, type Item, patch, remove, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { log } from '../log.ts'
import { deleteSecret } from '../aws/secrets.ts'

/**
 * No transaction spans the table and Secrets Manager, so the table has a marker for every unused secret. The marker is
 * created before the secret, removed by the transaction that stores the secret's name, and created again when the
 * secret is replaced or its provider removed. The sweep deletes the secrets of due markers.
 */

/** Longer than any request that writes a secret takes. */
const graceMs = 10 * 60_000

const OrphanedSecret = z.object({ name: z.string() })

/** Must be committed before the secret is created or deleted. */
export const markOrphaned = (name: string): WriteItem =>
  create(keys.orphanedSecret(name), { name, ...keys.dueIndexKeys(name, now() + graceMs) })

/** Removes the marker. The write fails if the secret is being deleted. */
export const adopt = (name: string): WriteItem =>
  remove(keys.orphanedSecret(name), { pk: { present: true }, isGoing: { absent: true } })

async function deleteOrphan(name: string): Promise<void> {
  // From now on, `adopt` fails. A missing marker means that the secret is in use or already deleted.
  if (await transact([patch(keys.orphanedSecret(name), { set: { isGoing: true } })])) return
  await deleteSecret(name)
  await transact([remove(keys.orphanedSecret(name))])
}

export async function deleteOrphanQuietly(name: string): Promise<void> {
  try {
    await deleteOrphan(name)
  } catch (error) {
    log('warn', 'Failed to delete an orphaned secret; the sweep retries', { name, error: String(error) })
  }
}

export const deleteOrphanOf = (item: Item): Promise<void> => deleteOrphan(OrphanedSecret.parse(item).name)

export const isOrphanedSecret = ({ sk }: Item): boolean => sk === 'ORPHANED-SECRET'
