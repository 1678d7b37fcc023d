import { randomUUID } from 'node:crypto'
import { access, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { type Item, query } from '../db/table.ts'
import { forEachLimit } from '../lib/async.ts'
import { log } from '../log.ts'
import { signCheckpoint } from './checkpoint.ts'
import { readAuditHead } from './projection.ts'

/**
 * Checkpoints are written to a place outside the table, so that a person with access to the table cannot replace them.
 */

const concurrency = 20

/** Writes a checkpoint of the newest entry of each trail, unless the target already has it. */
export async function writeCheckpoints(): Promise<void> {
  const target = config.PLAT_AUDIT_CHECKPOINT_TARGET
  if (target === '') return
  let failureCount = 0
  const writeCheckpoint = async (id: string) => {
    try {
      const head = await readAuditHead(id)
      if (head.seq > 0) await writeOnce(target, `${id}/${nameOf(head)}`, () => signCheckpoint(id, head))
    } catch (error) {
      failureCount += 1
      log('error', 'Failed to write an audit checkpoint', { organisationId: id, target, cause: error })
    }
  }
  for await (const ids of pagesOfOrganisations()) await forEachLimit(concurrency, ids, writeCheckpoint)
  if (failureCount > 0) throw new Error(`${failureCount} audit checkpoints were not written to ${target}.`)
}

/**
 * Names sort by entry number. They contain the hash, so that a checkpoint of a rewritten trail never has the name of an
 * earlier one.
 */
const nameOf = ({ seq, hash }: { seq: number; hash: string }): string =>
  `${String(seq).padStart(12, '0')}-${hash.slice(0, 16)}.jws`

async function* pagesOfOrganisations(): AsyncGenerator<string[]> {
  let after: Item | undefined
  do {
    const page = await query({ pk: keys.organisation('').pk, ...(after && { after }) })
    yield page.items.map((item) => String(item['id']))
    after = page.next
  } while (after !== undefined)
}

async function writeOnce(target: string, name: string, content: () => Promise<string>): Promise<void> {
  const match = /^s3:\/\/([^/]+)\/?(.*?)\/?$/.exec(target)
  if (match === null) return writeFileOnce(join(resolve(target), name), content)
  const [, Bucket, prefix = ''] = match
  const { putObjectOnce } = await import('../aws/objects.ts')
  return putObjectOnce({ Bucket, Key: prefix === '' ? name : `${prefix}/${name}` }, await content())
}

async function writeFileOnce(path: string, content: () => Promise<string>): Promise<void> {
  const isWritten = await access(path).then(
    () => true,
    () => false,
  )
  if (isWritten) return
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  // The file is renamed when it is complete, so that a kill leaves no partial checkpoint.
  const draft = `${path}.${randomUUID()}.draft`
  try {
    await using file = await open(draft, 'w', 0o600)
    await file.writeFile(`${await content()}\n`)
    await file.sync()
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}
