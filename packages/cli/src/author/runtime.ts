import { join, resolve } from 'node:path'
import { checkout } from './checkout.ts'
import { memberOf, readJson } from './json.ts'

/** The registry of the platform that runs on this machine, and who may write there. */
export interface OwnRegistry {
  host: string
  username: string
  password: string
}

/** What the platform of `npm start` tells its owner, in `PLAT_DATA_DIR` or this checkout; undefined where none runs. */
export async function ownRegistry(): Promise<OwnRegistry | undefined> {
  const folder = process.env['PLAT_DATA_DIR']
  const told = await readJson(join(folder ? resolve(folder) : checkout.data, 'runtime.json'))
  const [host, username, password] = ['host', 'username', 'password'].map((name) => memberOf(told, 'registry', name))
  const isTold = typeof host === 'string' && typeof username === 'string' && typeof password === 'string'
  return isTold ? { host, username, password } : undefined
}
