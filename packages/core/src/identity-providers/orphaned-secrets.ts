import * as z from 'zod'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, type Item, patch, remove, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { log } from '../log.ts'
import { deleteSecret } from '../aws/secrets.ts'

/**
 * No transaction holds both the table and Secrets Manager. So a note in the table stands for every secret that nothing uses:
 * it is there before a new secret is, goes with the transaction that puts it to use, and comes back with the one that puts
 * it out of use. What a process that died has left behind, the sweep removes.
 */

/** A request that writes a secret has ended long before. */
const graceMs = 10 * 60_000

const Unused = z.object({ name: z.string() })

/** The step that notes a secret as one that nothing uses: one that is going to be written, or one that may go. */
export const markOrphaned = (name: string): WriteItem =>
  create(keys.orphanedSecret(name), { name, ...keys.due(name, now() + graceMs) })

/** The step that puts a noted secret to use; refused once it is being removed. */
export const adopt = (name: string): WriteItem =>
  remove(keys.orphanedSecret(name), { pk: { present: true }, isGoing: { absent: true } })

/** Removes a noted secret, then its note. Two calls, and one of Secrets Manager. */
async function dispose(name: string): Promise<void> {
  // From here on nobody can put it to use; without a note somebody has, or it has gone.
  if (await transact([patch(keys.orphanedSecret(name), { set: { isGoing: true } })])) return
  await deleteSecret(name)
  await transact([remove(keys.orphanedSecret(name))])
}

/** The same, where nobody needs to wait for it: what fails is left to the sweep. */
export async function deleteOrphanQuietly(name: string): Promise<void> {
  try {
    await dispose(name)
  } catch (error) {
    log('warn', 'An unused secret is left to the sweep', { name, error: String(error) })
  }
}

/** What the sweep does with a note that is due. */
export const collectOrphans = (item: Item): Promise<void> => dispose(Unused.parse(item).name)

export const isOrphanedSecret = ({ sk }: Item): boolean => sk === 'UNUSED-SECRET'
