import { existsSync } from 'node:fs'
import { access, constants, copyFile, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { layoutVersion } from '@platform/core/db/schema'
import { makeFolder } from '@platform/oci/make-folder'
import { layoutAdvice, layoutOf, restoringFolder } from '../data-folder.ts'
import { syncFolder } from '../emulators/secrets/durable-file.ts'
import { lockFile } from '../file-lock.ts'
import { codeOf, explainFileError } from './file-error.ts'
import { BackupError, type Manifest } from './manifest.ts'
import { unpackBackup } from './read-backup.ts'

const lockName = 'lock.sqlite'
/** The root folder of an ext4 file system contains `lost+found`. The other names are files of the lock. */
const ignoredNames = new Set(['lost+found', lockName, `${lockName}-journal`])

interface Backup {
  file: string
  passphrase: string | undefined
}

/**
 * Restores a data folder from a backup. Unpacks and checks the files in a subfolder, which marks the data as incomplete
 * while it exists, and then moves them into place. Therefore, the data folder may be a mount point or a symbolic link.
 * Throws `BackupError` if the folder has data or is in use, or the backup cannot be restored.
 */
export async function restoreBackup(file: string, dataDir: string, passphrase?: string): Promise<Manifest> {
  const isMissing = !existsSync(dataDir)
  try {
    makeFolder(dataDir)
    await access(dataDir, constants.W_OK)
    await requireEmpty(dataDir)
    using _ = lockFolder(dataDir)
    // Another restore may have ended since the first check.
    await requireEmpty(dataDir)
    return await restoreOrRemove(dataDir, { file, passphrase }, isMissing)
  } catch (error) {
    throw explainFileError(error, dataDir)
  }
}

async function restoreOrRemove(dataDir: string, backup: Backup, isCreated: boolean): Promise<Manifest> {
  const placedPaths: string[] = []
  try {
    return await restoreInto(dataDir, backup, placedPaths)
  } catch (error) {
    await removeFiles(dataDir, placedPaths, isCreated).catch(() => undefined)
    throw error
  }
}

function lockFolder(dataDir: string): Disposable {
  const lock = lockFile(join(dataDir, lockName))
  if (lock === undefined) throw new BackupError(`Another process uses the folder ${dataDir}. Stop it, and try again.`)
  return lock
}

async function requireEmpty(dataDir: string): Promise<void> {
  const file = await findFirstFile(dataDir)
  if (file === undefined) return
  const isInterrupted = (await readdir(dataDir)).includes(restoringFolder)
  throw new BackupError(
    isInterrupted
      ? `An earlier restore into ${dataDir} was interrupted and left ${file}. Empty the folder, and try again.`
      : `The folder ${dataDir} contains data, such as ${file}. Move it, or set PLAT_DATA_DIR to another folder.`,
  )
}

/** Finds a file in a folder. Ignores empty folders, because they may be mount points. */
async function findFirstFile(folder: string, isTop = true): Promise<string | undefined> {
  for (const name of (await readdir(folder)).toSorted()) {
    if (isTop && (ignoredNames.has(name) || name === restoringFolder)) continue
    const path = join(folder, name)
    const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() ?? false
    const file = isFolder ? await findFirstFile(path, false) : path
    if (file !== undefined) return file
  }
  return undefined
}

async function restoreInto(dataDir: string, { file, passphrase }: Backup, placedPaths: string[]): Promise<Manifest> {
  const draft = join(dataDir, restoringFolder)
  await rm(draft, { recursive: true, force: true })
  await mkdir(draft, { mode: 0o700 })
  syncFolder(dataDir)
  const manifest = await unpackBackup(file, draft, passphrase)
  const layout = await layoutOf(draft)
  if (layout !== layoutVersion) throw new BackupError(`The data in ${file} cannot be restored. ${layoutAdvice(layout)}`)
  for (const { path } of manifest.files) {
    placedPaths.push(path)
    await moveFile(join(draft, path), join(dataDir, path))
  }
  for (const folder of new Set(placedPaths.map((path) => dirname(join(dataDir, path))))) syncFolder(folder)
  await rm(draft, { recursive: true })
  syncFolder(dataDir)
  return manifest
}

/**
 * Moves a file so that an incomplete file never has the target's name. If the target is on another file system, copies
 * the file beside the target and renames the copy.
 */
async function moveFile(source: string, target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  try {
    await rename(source, target)
  } catch (error) {
    if (codeOf(error) !== 'EXDEV') throw error
    const copy = `${target}.restoring`
    await copyFile(source, copy)
    await using handle = await open(copy, 'r+')
    await handle.sync()
    await rename(copy, target)
  }
}

/** Removes the whole folder if the restore created it. Otherwise removes the marker of an incomplete restore last. */
async function removeFiles(dataDir: string, placedPaths: readonly string[], isCreated: boolean): Promise<void> {
  if (isCreated) return rm(dataDir, { recursive: true, force: true })
  for (const path of placedPaths) {
    const target = join(dataDir, path)
    for (const each of [target, `${target}.restoring`]) await rm(each, { force: true })
  }
  await rm(join(dataDir, restoringFolder), { recursive: true, force: true })
}
