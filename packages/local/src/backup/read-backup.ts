import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, mkdtemp, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { version } from '@platform/core/lib/version'
import { gt } from 'semver'
import { extract } from 'tar-stream'
import { syncFolder } from '../emulators/secrets/durable-file.ts'
import { BackupError, dataPrefix, isPlainPath, Manifest, manifestName, type SavedFile } from './manifest.ts'

type Entry = ReturnType<typeof extract> extends AsyncIterable<infer Each> ? Each : never

const damaged = (reason: string, cause?: unknown): BackupError =>
  new BackupError(`This is no whole backup: ${reason}. Nothing was restored.`, { cause })

/**
 * Restores a data folder from a backup, completely or not at all. Throws `BackupError` if the folder has data, or if
 * the file differs from the backup.
 */
export async function restoreBackup(file: string, dataDir: string): Promise<Manifest> {
  const present = await readdir(dataDir).catch(() => [])
  if (present.length > 0)
    throw new BackupError(`There are data in ${dataDir}. Move them away, or set PLAT_DATA_DIR to another folder.`)
  await mkdir(dirname(dataDir), { recursive: true })
  // Beside the target, so that one rename moves it there.
  const draft = await mkdtemp(join(dirname(dataDir), `${basename(dataDir)}.restoring-`))
  try {
    const manifest = await unpackBackup(file, draft)
    await rename(draft, dataDir)
    syncFolder(dirname(dataDir))
    return manifest
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    throw error
  }
}

async function unpackBackup(file: string, folder: string): Promise<Manifest> {
  const found = new Map<string, SavedFile>()
  let manifest: Manifest | undefined
  const entries = extract()
  const read = async () => {
    for await (const entry of entries) {
      const { name, type } = entry.header
      if (manifest !== undefined) throw damaged('something follows its end')
      if (type !== 'file') throw damaged('it holds what is no file')
      if (name === manifestName) manifest = await readManifest(entry)
      else await saveFile(entry, folder, found)
    }
  }
  // Both streams must have stopped before the draft is removed.
  const ends = await Promise.allSettled([read(), pipeline(createReadStream(file), createGunzip(), entries)])
  const reasons: unknown[] = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
  if (reasons.length > 0) throw explained(reasons, file)
  if (manifest === undefined) throw damaged('its end is missing')
  requireSame(manifest.files, found)
  return manifest
}

/** If one stream fails, the other one aborts: selects the original cause. */
function explained(reasons: readonly unknown[], file: string): unknown {
  const ours = reasons.find((reason) => reason instanceof BackupError)
  const full = reasons.find((reason) => codeOf(reason) === 'ENOSPC')
  if (ours !== undefined || full !== undefined) return ours ?? full
  const isMissing = reasons.some((reason) => codeOf(reason) === 'ENOENT')
  return isMissing ? new BackupError(`There is no file ${file}.`) : damaged('it cannot be read', reasons[0])
}

const codeOf = (reason: unknown): unknown => (reason instanceof Error && 'code' in reason ? reason.code : undefined)

async function readManifest(entry: Entry): Promise<Manifest> {
  const parsed = Manifest.safeParse(JSON.parse(await text(entry)))
  if (!parsed.success) throw damaged('its manifest is not in order', parsed.error)
  const { platformVersion } = parsed.data
  if (gt(platformVersion, version))
    throw new BackupError(`It was made by version ${platformVersion}, which is newer. Restore it with that version.`)
  return parsed.data
}

/** Writes a file below the folder. Only folders and files are created, so no link leads out of it. */
async function saveFile(entry: Entry, folder: string, found: Map<string, SavedFile>): Promise<void> {
  const { name } = entry.header
  const path = name.slice(dataPrefix.length)
  if (!name.startsWith(dataPrefix) || !isPlainPath(path) || found.has(path))
    throw damaged('a path in it leads elsewhere')
  const target = join(folder, path)
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  const hash = createHash('sha256')
  let bytes = 0
  const handle = await open(target, 'wx', 0o600)
  try {
    for await (const chunk of entry) {
      if (!(chunk instanceof Uint8Array)) throw damaged('it cannot be read')
      hash.update(chunk)
      bytes += chunk.length
      await handle.writeFile(chunk)
    }
    await handle.sync()
  } finally {
    await handle.close()
  }
  found.set(path, { path, bytes, sha256: hash.digest('hex') })
}

function requireSame(listed: readonly SavedFile[], found: ReadonlyMap<string, SavedFile>): void {
  if (listed.length !== found.size) throw damaged('there are more or fewer files in it than it says')
  for (const { path, bytes, sha256 } of listed) {
    const file = found.get(path)
    if (file?.bytes !== bytes || file.sha256 !== sha256) throw damaged(`${path} is not what was backed up`)
  }
}
