import { now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { layoutVersion } from '../db/schema.ts'
import { upsert } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { newSecret, sha256 } from '../id.ts'
import { type PlatformState, readState } from './state.ts'
import { writeCheckWrite } from './write-check.ts'
import { readSecret, writeSecret } from '../aws/secrets.ts'
import { ensureKeys } from '../signing/keys.ts'

/**
 * Runs at deployments, and at every start of the one-machine platform. Creates missing signing keys, and a setup token
 * while setup is incomplete.
 */
export async function bootstrap(): Promise<void> {
  requireLayout(await readState())
  await ensureKeys()
  // Retries after a concurrent start.
  while (!(await recordStart()));
}

function requireLayout({ starts, layout = 0 }: PlatformState): void {
  if (starts === 0 || layout === layoutVersion) return
  throw new Error(
    `The table has layout ${layout}, and this version of the platform requires layout ${layoutVersion}. ` +
      'Deploy the version that wrote the table, or use an empty one.',
  )
}

async function recordStart(): Promise<boolean> {
  const state = await readState()
  const starts = state.starts + 1
  const token = state.setupComplete || (await isTokenValid(state, starts)) ? {} : await createToken(starts)
  const isUnchanged = state.starts === 0 ? { starts: { absent: true } as const } : { starts: { is: state.starts } }
  const write = upsert(keys.platform(), { set: { starts, layout: layoutVersion, ...token } }, isUnchanged)
  return (await transact([write, writeCheckWrite()])) === undefined
}

/** A token is valid for two starts, unless the secret store contains a different token or none. */
async function isTokenValid(state: PlatformState, startCount: number): Promise<boolean> {
  if (startCount - state.tokenMintedAtStart >= 2) return false
  const token = await readSecret(config.PLAT_SECRET_ADMIN_TOKEN)
  return token !== undefined && sha256(token) === state.tokenHash
}

async function createToken(startCount: number): Promise<Partial<PlatformState>> {
  const token = `admin.${newSecret()}`
  await writeSecret(config.PLAT_SECRET_ADMIN_TOKEN, token)
  return { tokenHash: sha256(token), tokenMintedAtMs: now(), tokenMintedAtStart: startCount }
}
