import { join, resolve } from 'node:path'
import { checkout } from './checkout.ts'
import { memberOf, readJson } from './json.ts'

export interface OwnRegistry {
  host: string
  username: string
  password: string
}

/**
 * Reads the registry of the local platform from the data folder of `npm start` (`PLAT_DATA_DIR`, or the default in this
 * checkout). Returns undefined if the folder does not name a registry.
 */
export async function ownRegistry(): Promise<OwnRegistry | undefined> {
  const folder = process.env['PLAT_DATA_DIR']
  const runtimeData = await readJson(join(folder ? resolve(folder) : checkout.data, 'runtime.json'))
  const [host, username, password] = ['host', 'username', 'password'].map((name) =>
    memberOf(runtimeData, 'registry', name),
  )
  const isComplete = typeof host === 'string' && typeof username === 'string' && typeof password === 'string'
  return isComplete ? { host, username, password } : undefined
}
