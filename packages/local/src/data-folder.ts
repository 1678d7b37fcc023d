import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { lockFile } from './file-lock.ts'
import { readRuntimeFile, removeRuntimeFile } from './runtime-file.ts'
import { StartError } from './start-error.ts'

/** Takes the folder of all state for this process; fails when another platform has it. Disposing lets go. */
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
  // What a killed platform left would point to where nobody is, or to somebody else.
  await removeRuntimeFile(dataDir)
  return lock
}
