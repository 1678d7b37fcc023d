import { resolve } from 'node:path'

/** Returns a command for the operator's shell. It sets the data folder unless that is the default. */
export function shellCommand(command: string, dataDir: string): string {
  if (dataDir === resolve('.platform')) return command
  return `PLAT_DATA_DIR=${/^[\w./-]+$/.test(dataDir) ? dataDir : `'${dataDir.replaceAll("'", `'\\''`)}'`} ${command}`
}
