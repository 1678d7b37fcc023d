import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { decodeJwt, SignJWT } from 'jose'
import { beforeEach, expect, test } from 'vitest'
import { now, nowSeconds, shiftClock } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { readAccessKeys } from '@platform/core/signing/published-keys'
import { readSecret } from '@platform/core/aws/secrets'
import { ensureKeys, signer } from '@platform/core/signing/keys'
import { issueAccessToken, verifyAccessToken } from '@platform/core/signing/access-token'
import { errorCodeOf, expectError } from '../../support/fixtures.ts'
import { handler as bootstrap } from '../../../functions/bootstrap.ts'

const subject = { userId: newId('user'), organisationId: newId('org'), sessionId: newId('sess'), roles: ['Viewer'] }
const token = () => issueAccessToken(subject)
const kidOf = (jwt: string): string => JSON.parse(Buffer.from(jwt.split('.')[0] ?? '', 'base64url').toString()).kid
const currentKid = async (): Promise<string> =>
  JSON.parse((await readSecret(config.PLAT_SECRET_SIGNING_KEYS)) ?? '').access[0].kid
const publishedKids = async () => (await readAccessKeys()).keys.map(({ kid }) => kid)
const isGood = async (jwt: string) => (await errorCodeOf(verifyAccessToken(jwt))) === 'no error'
const starts = async () => (await get(keys.platform()))?.['starts']

const rotation = fileURLToPath(new URL('../support/rotate-keys.ts', import.meta.url))

/** A rotation that is killed at a failpoint, at this file's time. */
async function killedAt(place: string): Promise<void> {
  const env = { ...process.env, PLAT_FAILPOINT: `${place}=kill` }
  const ended = promisify(execFile)(process.execPath, [rotation, String(now() - Date.now())], { env })
  await expect(ended).rejects.toMatchObject({ signal: 'SIGKILL' })
}

const minuteMs = 60_000
/** Long enough for a new key to sign. */
const settle = () => shiftClock(11_000)

beforeEach(async () => {
  await ensureKeys()
  settle()
})

test('tokens of before go on until they expire; new ones use the new key', async () => {
  const before = await token()
  await bootstrap({ rotate: 'access' })
  settle()
  const after = await token()
  expect(kidOf(after)).toBe(await currentKid())
  expect(kidOf(after)).not.toBe(kidOf(before))
  expect(await isGood(before)).toBe(true)
  expect(await isGood(after)).toBe(true)
  shiftClock(14 * minuteMs)
  expect(await isGood(before)).toBe(true)
  shiftClock(2 * minuteMs)
  await expectError(verifyAccessToken(before), 'token_expired')
})

test('at every moment of a rotation what is signed is verified, by whoever has just read the keys as well', async () => {
  for (let second = 0; second < 30; second++) {
    if (second === 3 || second === 6) await ensureKeys({ rotate: true })
    expect(await isGood(await token()), `after ${second} seconds`).toBe(true)
    shiftClock(1000)
  }
})

test('rotations at once leave one key that signs, and break no token', async () => {
  const before = await token()
  await Promise.all([ensureKeys({ rotate: true }), ensureKeys({ rotate: true }), ensureKeys(), ensureKeys()])
  settle()
  const after = await token()
  expect(kidOf(after)).toBe(await currentKid())
  expect(await isGood(before)).toBe(true)
  expect(await isGood(after)).toBe(true)
})

test('a key that was replaced is taken back once all that it signed has expired, and not before', async () => {
  const first = kidOf(await token())
  await ensureKeys({ rotate: true })
  await ensureKeys({ rotate: true })
  shiftClock(20 * minuteMs)
  await ensureKeys()
  expect(await publishedKids()).toContain(first)
  shiftClock(45 * minuteMs)
  await ensureKeys()
  expect(await publishedKids()).toEqual([await currentKid()])
})

test('a key that has served for longer than thirty days may be replaced twice in a minute', async () => {
  shiftClock(29 * 24 * 60 * minuteMs)
  const before = await token()
  shiftClock(minuteMs)
  await ensureKeys({ rotate: true })
  shiftClock(minuteMs)
  await ensureKeys({ rotate: true })
  settle()
  expect(await isGood(before)).toBe(true)
  shiftClock(31 * 24 * 60 * minuteMs)
  await ensureKeys()
  expect(await publishedKids()).toContain(await currentKid())
  settle()
  expect(await isGood(await token())).toBe(true)
})

test('a withdrawn key is believed by nobody, whatever it has signed', async () => {
  const stolen = await token()
  await bootstrap({ rotate: 'access', withdraw: true })
  expect(await publishedKids()).toEqual([await currentKid()])
  shiftClock(6 * minuteMs)
  await expectError(verifyAccessToken(stolen), 'unauthenticated')
  expect(await isGood(await token())).toBe(true)
})

test('a withdrawn key is believed no more by those who have believed a token of it before', async () => {
  const stolen = await token()
  expect(await isGood(stolen)).toBe(true)
  await bootstrap({ rotate: 'access', withdraw: true })
  shiftClock(6 * minuteMs)
  await expectError(verifyAccessToken(stolen), 'unauthenticated')
})

test('a token signed with a stolen key is good for fifteen minutes, however late it claims to expire', async () => {
  const { kid, key } = await signer('access')
  const forged = await new SignJWT(decodeJwt(await token()))
    .setProtectedHeader({ alg: 'EdDSA', typ: 'at+jwt', kid })
    .setIssuedAt(nowSeconds())
    .setExpirationTime(nowSeconds() + 365 * 24 * 3600)
    .sign(key)
  expect(await isGood(forged)).toBe(true)
  shiftClock(14 * minuteMs)
  expect(await isGood(forged)).toBe(true)
  shiftClock(2 * minuteMs)
  await expectError(verifyAccessToken(forged), 'token_expired')
})

test('an order for a rotation is no API start, and an order for something else is refused', async () => {
  const before = await starts()
  await bootstrap({ rotate: 'access' })
  expect(await starts()).toBe(before)
  const kid = await currentKid()
  expect(() => bootstrap({ rotate: 'statement' })).toThrow('Invalid input')
  expect(() => bootstrap({ rotate: 'access', withdrawn: true })).toThrow('Unrecognized key')
  expect([await starts(), await currentKid()]).toEqual([before, kid])
})

test.for(['keys.published', 'keys.written'])(
  'a rotation that ends at %s breaks nothing, and the next one goes through',
  async (place) => {
    const before = await token()
    await killedAt(place)
    const meanwhile = await token()
    expect(await isGood(before)).toBe(true)
    expect(await isGood(meanwhile)).toBe(true)
    settle()
    const later = await token()
    expect(await isGood(later)).toBe(true)
    // Half a rotation, hours ago: whoever signs with the key of then must not find it taken back.
    shiftClock(3 * 60 * minuteMs)
    await ensureKeys({ rotate: true })
    expect(await isGood(await token())).toBe(true)
    settle()
    const last = await token()
    expect(kidOf(last)).toBe(await currentKid())
    expect(await isGood(last)).toBe(true)
  },
)
