import { join } from 'node:path'
import { releaseIdentity } from '@platform/core/updates/record'
import { version } from '@platform/core/lib/version'
import { compileCacheFor } from '../compile-cache.ts'
import { timeoutMsOf } from '../function-limits.ts'
import { type PoolOptions, startPool } from '../functions/pool.ts'
import type { Log } from '../log.ts'
import type { Settings } from '../settings.ts'
import type { StoredRelease } from './folder.ts'
import type { Version } from './traffic-split.ts'

interface VersionOptions {
  settings: Pick<Settings, 'functionThreads' | 'functionsDir'>
  environment: Record<string, string>
  connect?: PoolOptions['connect']
  warmUpTimeoutMs?: number
  log: Log
}

/** Imports the functions on every thread. If an import fails, rejects and leaves no thread running. */
export async function startVersion(
  { settings, environment, ...options }: VersionOptions,
  namesToImport: readonly string[],
  release?: StoredRelease,
): Promise<Version> {
  const { functionThreads: threadCount, functionsDir } = settings
  const checkoutLocation = {
    functionsDir,
    suffix: '.ts',
    environment: { ...environment, ...compileCacheFor(functionsDir) },
  }
  const location = release === undefined ? checkoutLocation : locationOf(release, environment)
  const pool = startPool({ threadCount, timeoutMsOf, ...options, ...location })
  try {
    await pool.warmUp(namesToImport)
  } catch (error) {
    await pool.close()
    throw error
  }
  return { pool, release: release === undefined ? { version } : releaseIdentity(release) }
}

/** The files that a function of a release serves are beside its code, so the function needs no assets folder. */
const locationOf = ({ folder }: StoredRelease, environment: Record<string, string>) => ({
  functionsDir: join(folder, 'functions'),
  suffix: '/index.mjs',
  environment: { ...environment, PLAT_ASSETS_DIR: '' },
})
