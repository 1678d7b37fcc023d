import { timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import { now } from '../../clock.ts'
import * as keys from '../../db/keys.ts'
import { create, get, patch, remove, type WriteItem } from '../../db/table.ts'
import { transact } from '../../db/transact.ts'
import { type ProviderGrant, sealGrant, unsealGrant } from '../../accounts/provider-check.ts'
import { newSecret, sha256 } from '../../id.ts'

/**
 * A sign-in in progress is stored as an attempt, then as a code that is exchanged for tokens. The key contains the hash
 * of a secret that appears in URLs; a second secret binds the item to the browser.
 */

export const attemptSeconds = 600
const codeSeconds = 60

const Attempt = z.object({
  providerId: z.string(),
  nonce: z.string(),
  codeVerifier: z.string(),
  returnTo: z.string().optional(),
})
export type Attempt = z.infer<typeof Attempt>

const SignedIn = z.object({
  providerId: z.string(),
  userId: z.string(),
  organisationId: z.string(),
  hasKeptRoles: z.literal(true).optional(),
})
type SignedIn = z.infer<typeof SignedIn>

const Sealed = z.object({ grant: z.instanceof(Uint8Array).optional() })

const Binding = z.object({ browserHash: z.string(), expiresAtMs: z.number() })

const newBinding = (browser: string, lifetimeSeconds: number) => {
  const expiresAtMs = now() + lifetimeSeconds * 1000
  return { browserHash: sha256(browser), expiresAtMs, ttl: Math.ceil(expiresAtMs / 1000) + 3600 }
}

/**
 * `browsers` are the secrets in the cookies of a browser, one for each of its attempts. `browser` is the secret that
 * matches the item; it is undefined if the item is bound to another browser or has expired.
 */
async function read(key: keys.Key, browsers: readonly string[]) {
  const item = await get(key)
  if (item === undefined) return undefined
  const { browserHash, expiresAtMs } = Binding.parse(item)
  const isBoundTo = (secret: string) => timingSafeEqual(Buffer.from(browserHash), Buffer.from(sha256(secret)))
  return { item, expiresAtMs, browser: expiresAtMs > now() ? browsers.find(isBoundTo) : undefined }
}

/** `browser` is the secret that binds the attempt to the browser. */
export async function storeAttempt(attempt: Attempt): Promise<{ state: string; browser: string }> {
  const [state, browser] = [newSecret(), newSecret()]
  await transact([create(keys.signInAttempt(sha256(state)), { ...attempt, ...newBinding(browser, attemptSeconds) })])
  return { state, browser }
}

/**
 * Returns undefined if the provider has no such attempt. `browser` is undefined if the attempt belongs to another
 * browser, has expired or was already used: the attempt then provides only the return path and opens no session.
 */
export async function consumeAttempt(
  state: string,
  browsers: readonly string[],
  providerId: string,
): Promise<(Attempt & { browser: string | undefined }) | undefined> {
  const key = keys.signInAttempt(sha256(state))
  const storedAttempt = await read(key, browsers)
  const attempt = storedAttempt && Attempt.parse(storedAttempt.item)
  if (attempt?.providerId !== providerId) return undefined
  if (storedAttempt?.browser === undefined) return { ...attempt, browser: undefined }
  // A used attempt is marked as expired and kept until its `ttl`.
  const unusedCondition = { expiresAtMs: { is: storedAttempt.expiresAtMs } }
  const failure = await transact([patch(key, { set: { expiresAtMs: 0 } }, unusedCondition)])
  return { ...attempt, browser: failure === undefined ? storedAttempt.browser : undefined }
}

export async function storeCode(
  signedIn: SignedIn,
  grant: ProviderGrant | undefined,
  browser: string,
): Promise<string> {
  const code = newSecret()
  const user = { ...signedIn, ...sealGrant(grant, code) }
  await transact([create(keys.signInCode(sha256(code)), { ...user, ...newBinding(browser, codeSeconds) })])
  return code
}

/** Returns undefined if the code is unknown, expired or of another browser. `consumeWrite` prevents a second use. */
export async function readCode(
  code: string,
  browsers: readonly string[],
): Promise<(SignedIn & { grant: ProviderGrant | undefined; consumeWrite: WriteItem }) | undefined> {
  const key = keys.signInCode(sha256(code))
  const storedCode = await read(key, browsers)
  if (storedCode?.browser === undefined) return undefined
  const { grant } = Sealed.parse(storedCode.item)
  return {
    ...SignedIn.parse(storedCode.item),
    grant: unsealGrant(grant, code),
    consumeWrite: remove(key, { pk: { present: true } }),
  }
}
