import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { shiftClock } from '@platform/core/clock'
import { ensureKeys } from '@platform/core/signing/keys'
import { replaceStatementKey, signStatement, statementKeys, successorsOf } from '@platform/core/signing/statement-keys'
import { compactVerify, decodeJwt, decodeProtectedHeader, importJWK, type JWK } from 'jose'
import { beforeEach, expect, test } from 'vitest'
import { handler as bootstrap } from '../../../functions/bootstrap.ts'

interface PublicKey extends JWK {
  kid: string
}

const currentKey = async (): Promise<PublicKey> => (await statementKeys()).keys[0] ?? { kid: '' }

/** Follows the successors as a relay that trusts only the given key. Returns the id of the last key. */
async function follow(trusted: PublicKey): Promise<string | undefined> {
  let key = trusted
  const successors = await successorsOf(trusted.kid)
  for (const successor of typeof successors === 'string' ? [] : successors) {
    const { payload, protectedHeader } = await compactVerify(successor, await importJWK(key, 'EdDSA'))
    expect(protectedHeader).toEqual({ alg: 'EdDSA', typ: 'statement-key+jws', kid: key.kid })
    key = JSON.parse(new TextDecoder().decode(payload)).key
  }
  return key.kid
}

beforeEach(() => ensureKeys())

test('each replaced key leads to the current one, which signs, and access keys stay', async () => {
  const firstKey = await currentKey()
  for (let replacement = 1; replacement <= 3; replacement++) {
    await bootstrap({ rotate: 'statements' })
    expect(await successorsOf(firstKey.kid)).toHaveLength(replacement)
  }
  const { kid } = await currentKey()
  expect(await follow(firstKey)).toBe(kid)
  expect(await successorsOf(kid)).toEqual([])
  expect(decodeProtectedHeader(await signStatement({})).kid).toBe(kid)
  await ensureKeys({ rotate: true })
  expect((await currentKey()).kid).toBe(kid)
})

test('of concurrent replacements of one key, one takes effect', async () => {
  const firstKey = await currentKey()
  await Promise.all(Array.from({ length: 4 }, () => replaceStatementKey()))
  expect(await successorsOf(firstKey.kid)).toHaveLength(1)
  expect(await follow(firstKey)).toBe((await currentKey()).kid)
})

test('a withdrawal also takes effect beside a concurrent replacement', async () => {
  const firstKey = await currentKey()
  await Promise.all([replaceStatementKey(), replaceStatementKey({ withdraw: true }), replaceStatementKey()])
  const current = await currentKey()
  shiftClock(6000)
  expect([await successorsOf(firstKey.kid), await successorsOf(current.kid)]).toEqual(['unknown', []])
})

test.each(['statement-key.signed', 'statement-key.written'])(
  'a replacement that is killed at %s leaves a key that relays can learn, and can be repeated',
  async (failpoint) => {
    const firstKey = await currentKey()
    const script = fileURLToPath(new URL('../support/rotate-keys.ts', import.meta.url))
    const env = { ...process.env, PLAT_FAILPOINT: `${failpoint}=kill` }
    const killedRotation = promisify(execFile)(process.execPath, [script, '0', 'statements'], { env })
    await expect(killedRotation).rejects.toMatchObject({ signal: 'SIGKILL' })
    await ensureKeys()
    expect(await follow(firstKey)).toBe((await currentKey()).kid)
    await replaceStatementKey()
    expect(await follow(firstKey)).toBe((await currentKey()).kid)
  },
)

test('a key that another process made after the last read is undecided until the next read, never unknown', async () => {
  shiftClock(6000)
  expect(await successorsOf('made-up')).toBe('unknown')
  const script = fileURLToPath(new URL('../support/rotate-keys.ts', import.meta.url))
  await promisify(execFile)(process.execPath, [script, '0', 'statements'])
  const { kid } = await currentKey()
  expect([await successorsOf(kid), await successorsOf('made-up')]).toEqual(['undecided', 'unknown'])
  shiftClock(5000)
  expect([await successorsOf(kid), await successorsOf('made-up')]).toEqual([[], 'unknown'])
})

test('no statement leads from a withdrawn key, an unknown key, or one that was replaced eleven times', async () => {
  const firstKey = await currentKey()
  for (let replacement = 0; replacement < 10; replacement++) await replaceStatementKey()
  expect(await successorsOf(firstKey.kid)).toHaveLength(10)
  await replaceStatementKey()
  shiftClock(6000)
  expect(await successorsOf(firstKey.kid)).toBe('unknown')
  const lastKey = await currentKey()
  await replaceStatementKey({ withdraw: true })
  for (const kid of [lastKey.kid, 'unknown', '']) {
    shiftClock(6000)
    expect(await successorsOf(kid)).toBe('unknown')
  }
  expect(decodeJwt(await signStatement({ jobId: 'job' }))).toEqual({ jobId: 'job' })
})
