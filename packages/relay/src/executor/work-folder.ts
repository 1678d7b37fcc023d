import { execFile } from 'node:child_process'
import { chmodSync, lstatSync, mkdirSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { FatalError } from '../exit-codes.ts'
import { hasCode } from '../files.ts'
import { messageOf, warn } from '../log.ts'
import { type ScriptUser, startAs } from './user.ts'

const run = promisify(execFile)

/**
 * Creates the folder below which scripts run, if it is missing. Throws `FatalError` if another user owns the folder or
 * it cannot be used.
 */
export function ensureWorkFolder(parent: string, { isOther }: ScriptUser): void {
  try {
    mkdirSync(parent, { recursive: true, mode: 0o700 })
    const status = lstatSync(parent)
    if (!status.isDirectory() || status.uid !== process.getuid?.()) {
      throw new FatalError('usage', `${parent} belongs to another user. Remove it, or use another --work-dir.`)
    }
    // Another user can enter the folder of its own script, but cannot list the other folders.
    chmodSync(parent, isOther ? 0o711 : 0o700)
  } catch (error) {
    if (error instanceof FatalError) throw error
    throw new FatalError('stateUnusable', `Scripts cannot run in ${parent}: ${messageOf(error)}. Use --work-dir.`)
  }
}

/** Removes the folders of scripts that earlier runs of the relay left. */
export async function clearWorkFolder(parent: string): Promise<void> {
  for (const name of readdirSync(parent)) await removeWorkFolder(join(parent, name))
}

/** Removes the folder of a script, including read-only content. Warns if the folder cannot be removed. */
export async function removeWorkFolder(path: string): Promise<void> {
  try {
    if (removeUnused(path)) return
    const { uid, gid } = lstatSync(path)
    // The content is removed as the script's user, because root would follow links that a remaining process creates.
    const command = ['sh', '-c', 'chmod -R u+rwX "$1" 2>/dev/null; rm -rf "$1"', 'sh', path]
    const { program, args, options } = startAs({ uid, gid }, '/', command)
    await run(program, args, { env: { PATH: process.env['PATH'] }, ...options }).catch(() => {})
    rmdirSync(path)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    warn(`The folder ${path} of a script could not be removed: ${messageOf(error)}. Remove it, or restart the relay.`)
  }
}

/** Removes the folder of a script that left nothing in it, without the start of a process. */
function removeUnused(path: string): boolean {
  try {
    rmdirSync(join(path, 'work'))
    unlinkSync(join(path, 'script'))
    rmdirSync(path)
    return true
  } catch {
    return false
  }
}
