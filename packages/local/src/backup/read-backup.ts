import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { version } from '@platform/core/lib/version'
import { gt } from 'semver'
import { extract } from 'tar-stream'
import { decryptWith } from './encryption.ts'
import { explainFileError, isFileError } from './file-error.ts'
import { BackupError, dataPrefix, isPlainPath, Manifest, manifestName, type SavedFile } from './manifest.ts'

type Entry = ReturnType<typeof extract> extends AsyncIterable<infer Each> ? Each : never

const damagedError = (reason: string, cause?: unknown): BackupError =>
  new BackupError(`The backup is damaged: ${reason}. Nothing was restored.`, { cause })

/**
 * Unpacks a backup into a folder. Throws `BackupError` if the backup is damaged or of a newer version, or if a file
 * cannot be read or written.
 */
export async function unpackBackup(file: string, folder: string, passphrase?: string): Promise<Manifest> {
  const restoredFiles = new Map<string, SavedFile>()
  let manifest: Manifest | undefined
  const entries = extract()
  const read = async () => {
    for await (const entry of entries) {
      const { name, type } = entry.header
      if (manifest !== undefined) throw damagedError('it has content after its end')
      if (type !== 'file') throw damagedError('it contains an entry that is not a file')
      if (name === manifestName) manifest = await readManifest(entry)
      else await saveFile(entry, folder, restoredFiles)
    }
  }
  // Both streams must have stopped before the caller removes the folder.
  const results = await Promise.allSettled([
    read(),
    pipeline(createReadStream(file), decryptWith(passphrase), createGunzip(), entries),
  ])
  const reasons: unknown[] = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
  if (reasons.length > 0) throw errorOf(reasons, file)
  if (manifest === undefined) throw damagedError('its end is missing')
  requireSame(manifest.files, restoredFiles)
  return manifest
}

/** Selects the original cause, because a stream that fails also aborts the other one. */
function errorOf(reasons: readonly unknown[], file: string): unknown {
  const backupError = reasons.find((reason) => reason instanceof BackupError)
  const fileError = reasons.find(isFileError)
  return (
    backupError ??
    (fileError === undefined ? damagedError('it cannot be read', reasons[0]) : explainFileError(fileError, file))
  )
}

async function readManifest(entry: Entry): Promise<Manifest> {
  const parsed = Manifest.safeParse(JSON.parse(await text(entry)))
  if (!parsed.success) throw damagedError('its manifest is invalid', parsed.error)
  const { platformVersion } = parsed.data
  if (gt(platformVersion, version))
    throw new BackupError(`The backup was made by the newer version ${platformVersion}. Restore it with that version.`)
  return parsed.data
}

/** Creates only folders and regular files, so that no link can lead out of the folder. */
async function saveFile(entry: Entry, folder: string, restoredFiles: Map<string, SavedFile>): Promise<void> {
  const { name } = entry.header
  const path = name.slice(dataPrefix.length)
  if (!name.startsWith(dataPrefix) || !isPlainPath(path) || restoredFiles.has(path))
    throw damagedError('it contains an invalid path')
  const target = join(folder, path)
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  const hash = createHash('sha256')
  let bytes = 0
  const handle = await open(target, 'wx', 0o600)
  try {
    for await (const chunk of entry) {
      if (!(chunk instanceof Uint8Array)) throw damagedError('it cannot be read')
      hash.update(chunk)
      bytes += chunk.length
      await handle.writeFile(chunk)
    }
    await handle.sync()
  } catch (error) {
    throw explainFileError(error, target)
  } finally {
    await handle.close()
  }
  restoredFiles.set(path, { path, bytes, sha256: hash.digest('hex') })
}

function requireSame(listedFiles: readonly SavedFile[], restoredFiles: ReadonlyMap<string, SavedFile>): void {
  if (listedFiles.length !== restoredFiles.size) throw damagedError('its files differ from its manifest')
  for (const { path, bytes, sha256 } of listedFiles) {
    const file = restoredFiles.get(path)
    if (file?.bytes !== bytes || file.sha256 !== sha256)
      throw damagedError(`the content of ${path} differs from the manifest`)
  }
}
