import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadOrCreateRegistryPassword } from '../generated-secrets.ts'
import type { Log } from '../log.ts'
import { explainListenError } from '../start-error.ts'
import { type Registry, startRegistry } from './server.ts'

export interface EmbeddedRegistry extends Registry {
  password: string
  folder: string
  /** Whether the port differs from that of the last start, so that stored image references are outdated. */
  hasMoved: boolean
}

/** Starts the registry. With port 0, reuses the port of the last start if it is free. */
export async function startEmbeddedRegistry(dataDir: string, port: number, log: Log): Promise<EmbeddedRegistry> {
  const folder = join(dataDir, 'registry')
  const password = await loadOrCreateRegistryPassword(dataDir)
  const lastPort = await readLastPort(folder)
  const start = (candidatePort: number) => startRegistry({ folder, port: candidatePort, password, log })
  const startingRegistry = port === 0 && lastPort !== undefined ? start(lastPort).catch(() => start(0)) : start(port)
  const address = { host: '127.0.0.1', port, setting: 'PLAT_REGISTRY_PORT' }
  const registry = await startingRegistry.catch(explainListenError(address))
  const boundPort = Number(registry.host.split(':')[1])
  const hasMoved = boundPort !== lastPort
  if (hasMoved) await writeFile(join(folder, 'port'), String(boundPort))
  return { ...registry, password, folder, hasMoved }
}

async function readLastPort(folder: string): Promise<number | undefined> {
  const text = await readFile(join(folder, 'port'), 'utf8').catch(() => '')
  return /^\d{1,5}$/.test(text) ? Number(text) : undefined
}
