import { join } from 'node:path'
import { releaseIdentity } from '@platform/core/updates/record'
import { version } from '@platform/core/lib/version'
import { compileCacheFor } from '../compile-cache.ts'
import { timeoutMsOf } from '../function-limits.ts'
import { startPool } from '../functions/pool.ts'
import type { Log } from '../log.ts'
import type { Settings } from '../settings.ts'
import type { StoredRelease } from './folder.ts'
import type { Version } from './traffic-split.ts'

interface Threads {
  settings: Pick<Settings, 'functionThreads' | 'functionsDir'>
  environment: Record<string, string>
  /** Time limit for the import of a function, a minute by default. */
  warmUpTimeoutMs?: number
  log: Log
}

/** Starts threads, and imports functions on each. If one cannot be imported, rejects and leaves no thread running. */
export async function startVersion(
  { settings, environment, ...options }: Threads,
  toImport: readonly string[],
  release?: StoredRelease,
): Promise<Version> {
  const { functionThreads: threads, functionsDir } = settings
  const ofCheckout = { functionsDir, suffix: '.ts', environment: { ...environment, ...compileCacheFor(functionsDir) } }
  const place = release === undefined ? ofCheckout : placeOf(release, environment)
  const pool = startPool({ threads, timeoutMsOf, ...options, ...place })
  try {
    await pool.warmUp(toImport)
  } catch (error) {
    await pool.close()
    throw error
  }
  return { pool, release: release === undefined ? { version } : releaseIdentity(release) }
}

/** The files that a function of a release serves are beside its code. */
const placeOf = ({ folder }: StoredRelease, environment: Record<string, string>) => ({
  functionsDir: join(folder, 'functions'),
  suffix: '/index.mjs',
  environment: { ...environment, PLAT_ASSETS_DIR: '' },
})
