import { now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { upsert } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { newSecret, sha256 } from '../id.ts'
import { type PlatformState, readState } from './state.ts'
import { readSecret, writeSecret } from '../aws/secrets.ts'
import { ensureKeys } from '../signing/keys.ts'

/** An API start: creates signing keys if missing, and a setup token while setup is incomplete. */
export async function bootstrap(): Promise<void> {
  await ensureKeys()
  // A concurrent start fails the condition; then read its result.
  while (!(await countStart()));
}

async function countStart(): Promise<boolean> {
  const state = await readState()
  const starts = state.starts + 1
  const set =
    state.setupComplete || (await isTokenAlive(state, starts)) ? { starts } : { starts, ...(await mintToken(starts)) }
  const unchanged = state.starts === 0 ? { starts: { absent: true } as const } : { starts: { is: state.starts } }
  return (await transact([upsert(keys.platform(), { set }, unchanged)])) === undefined
}

/**
 * Every second start after minting creates a new token, and so does a start that finds a different one in the secret
 * store.
 */
async function isTokenAlive(state: PlatformState, starts: number): Promise<boolean> {
  if (starts - state.tokenMintedAtStart >= 2) return false
  const token = await readSecret(config.PLAT_SECRET_ADMIN_TOKEN)
  return token !== undefined && sha256(token) === state.tokenHash
}

async function mintToken(starts: number): Promise<Partial<PlatformState>> {
  const token = `admin.${newSecret()}`
  await writeSecret(config.PLAT_SECRET_ADMIN_TOKEN, token)
  return { tokenHash: sha256(token), tokenMintedAtMs: now(), tokenMintedAtStart: starts }
}
