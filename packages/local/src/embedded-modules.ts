import { createPublicKey } from 'node:crypto'
import { moduleSigningKey } from './generated-secrets.ts'
import type { Log } from './log.ts'
import { type EmbeddedRegistry, startEmbeddedRegistry } from './registry/embedded.ts'
import { seedHello } from './registry/seed.ts'
import type { Settings } from './settings.ts'

/** Where modules come from on one machine: the embedded registry, with the reference module in it. */
export interface EmbeddedModules {
  registry: EmbeddedRegistry
  /** Public half (PEM) of the key that the platform signs with what it brings along. */
  ownKey: string
  /** Whether what the catalog knows of the registry is out of date; settles once the reference module is there. */
  isNews: Promise<boolean>
  close: () => Promise<void>
}

/** Downloads that are under way at a stop get so long. */
const drainLimitMs = 1000

/** Starts the registry; the reference module is put into it while others start. `assets` settles when it is built. */
export async function startEmbeddedModules(
  { dataDir, registryPort, assetsDir }: Pick<Settings, 'dataDir' | 'registryPort' | 'assetsDir'>,
  assets: Promise<void>,
  log: Log,
): Promise<EmbeddedModules> {
  const registry = await startEmbeddedRegistry(dataDir, registryPort, log)
  const signingKey = await moduleSigningKey(dataDir)
  const isNews = assets
    .then(() => seedHello(registry, assetsDir, signingKey))
    .then((isSeeded) => isSeeded || registry.hasMoved)
  // Whoever starts the platform asks later how it went.
  const settled = isNews.catch(() => false)
  return {
    registry,
    ownKey: createPublicKey(signingKey).export({ type: 'spki', format: 'pem' }).toString(),
    isNews,
    close: async () => {
      await settled
      await registry.close(drainLimitMs)
    },
  }
}
