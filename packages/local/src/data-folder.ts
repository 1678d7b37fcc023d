import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { layoutVersion } from '@platform/core/db/schema'
import { makeFolder } from '@platform/oci/make-folder'
import { lockFile } from './file-lock.ts'
import { replaceFile } from './releases/durable.ts'
import { readRuntimeFile, removeRuntimeFile } from './runtime-file.ts'
import { StartError } from './start-error.ts'

const layoutFile = 'layout-version'

/** Name of the folder that contains the files of an incomplete restore that are not in place yet. */
export const restoringFolder = 'restoring'

/** Returns 0 for data without a layout version, undefined without data. */
export async function layoutOf(dataDir: string): Promise<number | undefined> {
  const text = await readFile(join(dataDir, layoutFile), 'utf8').catch(() => undefined)
  if (text !== undefined) return Number(text)
  return (await readdir(join(dataDir, 'dynamodb')).catch(() => [])).length > 0 ? 0 : undefined
}

export const layoutAdvice = (layout: number | undefined): string =>
  `It has layout ${layout ?? 0}, and this version of the platform requires layout ${layoutVersion}. ` +
  'Use the version that wrote it, or start with an empty folder (PLAT_DATA_DIR).'

/**
 * Claims the data folder for this process until the result is disposed. Throws `StartError` if the folder is not
 * writable, in use, of another layout or only partly restored.
 */
export async function claimDataFolder(dataDir: string): Promise<Disposable> {
  try {
    for (const name of ['dynamodb', 'sqs', 'secrets', 'registry']) makeFolder(join(dataDir, name))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StartError(`Cannot write to the data folder: ${reason}. Set PLAT_DATA_DIR to another folder.`)
  }
  const lock = lockFile(join(dataDir, 'lock.sqlite'))
  if (lock === undefined) {
    const owner = await readRuntimeFile(dataDir).catch(() => undefined)
    const ownerName = owner === undefined ? 'Another platform' : `The platform with process id ${owner.processId}`
    const advice = 'Stop it, or set PLAT_DATA_DIR to another folder.'
    throw new StartError(`${ownerName} uses the data in ${dataDir}. ${advice}`)
  }
  if ((await readdir(dataDir)).includes(restoringFolder)) {
    lock[Symbol.dispose]()
    throw new StartError(`A restore into ${dataDir} was interrupted. Empty the folder, and restore again.`)
  }
  const layout = await layoutOf(dataDir)
  if (layout === undefined) await replaceFile(join(dataDir, layoutFile), `${layoutVersion}\n`)
  else if (layout !== layoutVersion) {
    lock[Symbol.dispose]()
    throw new StartError(`The data in ${dataDir} cannot be used. ${layoutAdvice(layout)}`)
  }
  // The runtime file of a killed platform contains addresses that are no longer valid.
  await removeRuntimeFile(dataDir)
  return lock
}
