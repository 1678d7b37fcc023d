import { ClassicLevel } from 'classic-level'
import { MemoryLevel } from 'memory-level'

const MEBIBYTE = 1024 * 1024

/** The ordered store below everything: text keys, JSON values. What stands under which key is told in keys.ts. */
export type Database = ClassicLevel<string, any>

/** Opens the store under `dataDir`; without one it lives in memory and dies with the process. */
export async function openDatabase(dataDir?: string): Promise<Database> {
  const database = dataDir === undefined ? inMemory() : onDisk(dataDir)
  await database.open()
  return database
}

function onDisk(dataDir: string): Database {
  return new ClassicLevel(dataDir, {
    valueEncoding: 'json',
    cacheSize: 32 * MEBIBYTE,
    writeBufferSize: 16 * MEBIBYTE,
  })
}

/** The memory store has the same interface, and ignores the options that speak of a disk. */
function inMemory(): Database {
  const database: any = new MemoryLevel({ valueEncoding: 'json', storeEncoding: 'utf8' })
  return database
}
