import * as z from 'zod'
import { nowSeconds } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { type Item, upsert, type WriteItem } from '../db/table.ts'
import { newSecret, sha256 } from '../id.ts'

/**
 * A device is a browser in which users have signed in with a password or a refresh token. Failed sign-ins of strangers
 * do not limit the sign-ins of these users from the device. The cookie of the device grants nothing else, so it stays
 * valid when sessions end.
 */

export const deviceSeconds = 365 * 24 * 3600
/** One person may have several accounts. A directory user takes two entries. */
const maxUsers = 20

/** `users` contains ids of users, and hashes of the names that users of directories typed. */
const Device = z.object({ users: z.set(z.string()), ttl: z.number() })

export interface Device {
  token: string
  users: ReadonlySet<string>
  expiresAtSeconds: number
}

/** Returns undefined if the cookie is absent or malformed. */
export const deviceKeyOf = (token: string | undefined): keys.Key | undefined =>
  token !== undefined && /^[\w-]{43}$/.test(token) ? keys.device(sha256(token)) : undefined

/** Returns undefined if the device is unknown or expired. */
export function parseDevice(token: string, item: Item | undefined): Device | undefined {
  if (item === undefined) return undefined
  const { users, ttl } = Device.parse(item)
  return ttl > nowSeconds() ? { token, users, expiresAtSeconds: ttl } : undefined
}

/**
 * Adds the users to the known device, or to a new device if none is known or the known one is full. Returns no writes
 * if the known device already has the users and is valid for more than half a year.
 */
export function rememberDevice(
  device: Device | undefined,
  users: readonly [string, ...string[]],
): { token: string; writes: WriteItem[] } {
  const ttl = nowSeconds() + deviceSeconds
  const isCurrent =
    users.every((user) => device?.users.has(user)) && (device?.expiresAtSeconds ?? 0) > nowSeconds() + deviceSeconds / 2
  const token = device !== undefined && device.users.size < maxUsers ? device.token : newSecret()
  if (device !== undefined && isCurrent) return { token: device.token, writes: [] }
  const change = { add: { users: new Set(users) }, set: { ttl } }
  return { token, writes: [upsert(keys.device(sha256(token)), change)] }
}
