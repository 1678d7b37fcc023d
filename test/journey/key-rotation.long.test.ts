import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { until } from '../conformance/support/until.ts'
import { PlatformProcess } from '../support/platform.ts'

const kidOf = (token: string): string => JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid

/** One test follows another on the same platform. */
let platform: PlatformProcess
let api: Platform
beforeAll(async () => {
  platform = await PlatformProcess.start()
  api = await platform.setUp()
})
afterAll(() => platform[Symbol.asyncDispose]())

let before: Awaited<ReturnType<Platform['signIn']>>

test('keys are rotated while the platform runs: no request fails, and what was signed before is good', async () => {
  before = await api.signIn()
  const statuses = new Map<number, number>()
  const asked = () => [...statuses.values()].reduce((sum, count) => sum + count, 0)
  const over = new AbortController()
  /** Signs in, or refreshes, and asks with what comes of it, all the while. */
  const caller = async () => {
    let session = await api.signIn()
    while (!over.signal.aborted) {
      const { status } = await api.anonymous.withToken(session.accessToken).get('/api/v1/auth/me')
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      const { refreshToken } = session
      session = answered(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 200)
    }
  }
  const callers = [caller(), caller(), caller()]
  const rotations = await Promise.all([1, 2].map(() => platform.command('npm run -s rotate-keys')))
  expect(rotations).toEqual([1, 2].map(() => expect.stringContaining('a new key')))
  answered(await api.anonymous.withToken(before.accessToken).get('/api/v1/auth/me'), 200)
  const { keys } = answered(await api.anonymous.get('/.well-known/jwks.json'), 200)
  expect(keys.length).toBeGreaterThanOrEqual(3)
  expect(keys.map(({ kid }: { kid: string }) => kid)).toContain(kidOf(before.accessToken))

  const sinceThen = asked()
  await until('callers went on with the new key there', async () => asked() > sinceThen + 10)
  over.abort()
  await Promise.all(callers)
  expect([...statuses.keys()]).toEqual([200])
})

// By then whoever kept the keys has read them again; the tests of keys move time.
test('the new key signs after a while, and a platform that was killed believes both', async () => {
  await platform.kill()
  await platform.restart()
  const after = await until('the new key signs', async () => {
    const session = await api.signIn()
    return kidOf(session.accessToken) !== kidOf(before.accessToken) && session
  })
  answered(await api.anonymous.withToken(after.accessToken).get('/api/v1/auth/me'), 200)
  answered(await api.anonymous.withToken(before.accessToken).get('/api/v1/auth/me'), 200)
})

test('the module key and the registry’s password are made anew where they were deleted, and hello is signed with the new key', async () => {
  const admin = await api.admin
  const keyFile = join(platform.dataDir, 'module-signing-key.pem')
  const secrets = async () => [await readFile(keyFile, 'utf8'), await platform.command('npm run -s registry-password')]
  const isVerified = async () => {
    const { items } = answered(await admin.get('/api/v1/modules/catalog'), 200)
    return items.some(({ id, verified }: { id: string; verified: boolean }) => id === 'hello' && verified)
  }
  const secretsBefore = await secrets()
  expect(await isVerified()).toBe(true)
  await platform.stop()
  await Promise.all([rm(keyFile), rm(join(platform.dataDir, 'registry-password'))])
  await platform.restart()
  const after = await secrets()
  for (const [index, secret] of after.entries()) expect(secret).not.toBe(secretsBefore[index])
  expect(await isVerified()).toBe(true)
})

test('where no platform runs, a rotation tells how to start one', async () => {
  await platform.stop()
  await expect(platform.command('npm run -s rotate-keys')).rejects.toMatchObject({
    stderr: expect.stringMatching(/^No platform runs on the data in .* Start it with: npm start/),
  })
})
