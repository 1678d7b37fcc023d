import { resolve } from 'node:path'

/** A command for the shell of the operator. It sets the data folder unless that is the default. */
export function shellCommand(command: string, dataDir: string): string {
  if (dataDir === resolve('.platform')) return command
  return `PLAT_DATA_DIR=${/^[\w./-]+$/.test(dataDir) ? dataDir : `'${dataDir.replaceAll("'", `'\\''`)}'`} ${command}`
}
