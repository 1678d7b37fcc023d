import { resolve } from 'node:path'

/** Returns a command for the operator's shell, which sets `PLAT_DATA_DIR` unless the data folder is the default. */
export function shellCommand(command: string, dataDir: string): string {
  if (dataDir === resolve('.platform')) return command
  return `PLAT_DATA_DIR=${/^[\w./-]+$/.test(dataDir) ? dataDir : `'${dataDir.replaceAll("'", `'\\''`)}'`} ${command}`
}
