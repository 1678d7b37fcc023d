import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { lockFile } from './file-lock.ts'
import { readRuntimeFile, removeRuntimeFile } from './runtime-file.ts'
import { StartError } from './start-error.ts'

/** Claims the data folder for this process until disposed; fails while another platform uses it. */
export async function claimDataFolder(dataDir: string): Promise<Disposable> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  for (const part of ['dynamodb', 'sqs', 'secrets', 'registry']) {
    await mkdir(join(dataDir, part), { recursive: true, mode: 0o700 })
  }
  const lock = lockFile(join(dataDir, 'lock.sqlite'))
  if (lock === undefined) {
    const owner = await readRuntimeFile(dataDir).catch(() => undefined)
    const who = owner === undefined ? 'Another platform' : `The platform with process id ${owner.processId}`
    const advice = 'Stop it, or set PLAT_DATA_DIR to another folder.'
    throw new StartError(`${who} uses the data in ${dataDir}. ${advice}`)
  }
  // The file of a killed platform names addresses that are no longer valid.
  await removeRuntimeFile(dataDir)
  return lock
}
