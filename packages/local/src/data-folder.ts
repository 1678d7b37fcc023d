import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { readRuntimeFile, removeRuntimeFile } from './runtime-file.ts'
import { StartFailure } from './start-failure.ts'

/** Takes the folder of all state for this process; fails when another platform has it. Disposing lets go. */
export async function claimDataFolder(dataDir: string): Promise<Disposable> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  for (const part of ['dynamodb', 'sqs', 'secrets', 'registry']) {
    await mkdir(join(dataDir, part), { recursive: true, mode: 0o700 })
  }
  // A lock of the operating system, held through SQLite: unlike a file with a process id it ends with the process.
  const lock = new DatabaseSync(join(dataDir, 'lock.sqlite'))
  try {
    lock.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    const owner = await readRuntimeFile(dataDir).catch(() => undefined)
    const who = owner === undefined ? 'Another platform' : `The platform with process id ${owner.processId}`
    const advice = 'Stop it, or set PLAT_DATA_DIR to another folder.'
    throw new StartFailure(`${who} uses the data in ${dataDir}. ${advice}`, { cause: error })
  }
  // What a killed platform left would point to where nobody is, or to somebody else.
  await removeRuntimeFile(dataDir)
  return { [Symbol.dispose]: () => lock.close() }
}
