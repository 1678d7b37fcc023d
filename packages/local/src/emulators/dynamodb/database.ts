import { ClassicLevel } from 'classic-level'
import { MemoryLevel } from 'memory-level'

const MEBIBYTE = 1024 * 1024

/** Ordered store of text keys and JSON values. keys.ts describes the keys. */
export type Database = ClassicLevel<string, any>

/** Without `dataDir`, the store is in memory only. */
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

/** `MemoryLevel` has the same interface and ignores disk options. */
function inMemory(): Database {
  const database: any = new MemoryLevel({ valueEncoding: 'json', storeEncoding: 'utf8' })
  return database
}
