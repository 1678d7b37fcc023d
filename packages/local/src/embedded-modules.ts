import { createPublicKey } from 'node:crypto'
import { loadOrCreateModuleSigningKey } from './generated-secrets.ts'
import type { Log } from './log.ts'
import { type EmbeddedRegistry, startEmbeddedRegistry } from './registry/embedded.ts'
import { seedHello } from './registry/seed.ts'
import type { Settings } from './settings.ts'

export interface EmbeddedModules {
  registry: EmbeddedRegistry
  /** Public key (PEM) that verifies the platform's own modules. */
  publicKey: string
  /** Resolves once the reference module is in the registry, to true if the catalog must be scanned. */
  needsScan: Promise<boolean>
  close: () => Promise<void>
}

/** Time limit for downloads in progress when the platform stops. */
const drainLimitMs = 1000

/** Starts the registry, and adds the reference module in the background once `assets` resolves. */
export async function startEmbeddedModules(
  { dataDir, registryPort, assetsDir }: Pick<Settings, 'dataDir' | 'registryPort' | 'assetsDir'>,
  assets: Promise<void>,
  log: Log,
): Promise<EmbeddedModules> {
  const registry = await startEmbeddedRegistry(dataDir, registryPort, log)
  const signingKey = await loadOrCreateModuleSigningKey(dataDir)
  const needsScan = assets
    .then(() => seedHello(registry, assetsDir, signingKey))
    .then((isSeeded) => isSeeded || registry.hasMoved)
  // Prevents an unhandled rejection; the caller awaits `needsScan` later.
  const seedingEnd = needsScan.catch(() => false)
  return {
    registry,
    publicKey: createPublicKey(signingKey).export({ type: 'spki', format: 'pem' }).toString(),
    needsScan,
    close: async () => {
      await seedingEnd
      await registry.close(drainLimitMs)
    },
  }
}
