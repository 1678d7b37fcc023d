import { statfs } from 'node:fs/promises'
import { ClassicLevel } from 'classic-level'
import { MemoryLevel } from 'memory-level'
import { storageFullError } from './errors.ts'

const MEBIBYTE = 1024 * 1024

/** Ordered store of text keys and JSON values. keys.ts describes the keys. */
export type Database = ClassicLevel<string, any>

/** Without `dataDir`, the store is in memory only. */
export async function openDatabase(dataDir?: string): Promise<Database> {
  const database = dataDir === undefined ? createInMemory() : createOnDisk(dataDir)
  await database.open()
  return database
}

function createOnDisk(dataDir: string): Database {
  return new ClassicLevel(dataDir, {
    valueEncoding: 'json',
    cacheSize: 32 * MEBIBYTE,
    writeBufferSize: 16 * MEBIBYTE,
  })
}

/** Free disk space that opening the store requires, because opening moves records from the log to tables. */
const minReopenBytes = 64 * MEBIBYTE

/**
 * Reopens the store, which starts a new log. Records after a partly written record would be lost, so no write may
 * follow a failed write in the same log. With too little free disk space, throws and leaves the store open.
 */
export async function reopen(database: Database): Promise<void> {
  const { bavail, bsize } = await statfs(database.location)
  if (bavail * bsize < minReopenBytes) throw storageFullError()
  await database.close()
  await database.open()
}

/** `MemoryLevel` has the same interface and ignores disk options. */
function createInMemory(): Database {
  const database: any = new MemoryLevel({ valueEncoding: 'json', storeEncoding: 'utf8' })
  return database
}
