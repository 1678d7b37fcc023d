import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { PlatformProcess } from '../support/platform.ts'
import { waitFor } from '../support/wait-for.ts'

const kidOf = (token: string): string => JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid

test('rotates keys without a failed request, keeps tokens valid, and signs with the new key after a restart', async () => {
  await using platform = await PlatformProcess.start()
  const api = await platform.setUp()
  const meStatus = async ({ accessToken }: any) =>
    (await api.anonymous.withToken(accessToken).get('/api/v1/auth/me')).status
  const before = await api.signIn()
  const statuses: number[] = []
  const stop = new AbortController()
  const call = async () => {
    let session = await api.signIn()
    while (!stop.signal.aborted) {
      statuses.push(await meStatus(session))
      const { refreshToken } = session
      session = expectStatus(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 200)
    }
  }
  const callers = [call(), call(), call()]
  const rotations = await Promise.all([1, 2].map(() => platform.command('npm run -s rotate-keys')))
  expect(rotations).toEqual([1, 2].map(() => expect.stringContaining('a new key')))
  expect(await meStatus(before)).toBe(200)
  const { keys } = expectStatus(await api.anonymous.get('/.well-known/jwks.json'), 200)
  expect(keys.length).toBeGreaterThanOrEqual(3)
  expect(keys.map(({ kid }: { kid: string }) => kid)).toContain(kidOf(before.accessToken))
  const count = statuses.length
  await waitFor('requests after the rotation', async () => statuses.length > count + 10)
  stop.abort()
  await Promise.all(callers)
  expect(new Set(statuses)).toEqual(new Set([200]))

  await platform.kill()
  await platform.restart()
  const after = await waitFor('a token of the new key', async () => {
    const session = await api.signIn()
    return kidOf(session.accessToken) !== kidOf(before.accessToken) && session
  })
  expect([await meStatus(after), await meStatus(before)]).toEqual([200, 200])
  await platform.stop()
  await expect(platform.command('npm run -s rotate-keys')).rejects.toMatchObject({
    stderr: expect.stringMatching(/^No platform runs on the data in .* Start it with: npm start/),
  })
})

test('generates a deleted module key and registry password again, and signs hello with the new key', async () => {
  await using platform = await PlatformProcess.start()
  const admin = await (await platform.setUp()).admin
  const keyFile = join(platform.dataDir, 'module-signing-key.pem')
  const secrets = async () => [await readFile(keyFile, 'utf8'), await platform.command('npm run -s registry-password')]
  const isVerified = async () => {
    const { items } = expectStatus(await admin.get('/api/v1/modules/catalog'), 200)
    return items.some(({ id, verified }: { id: string; verified: boolean }) => id === 'hello' && verified)
  }
  const before = await secrets()
  expect(await isVerified()).toBe(true)
  await platform.stop()
  await Promise.all([rm(keyFile), rm(join(platform.dataDir, 'registry-password'))])
  await platform.restart()
  for (const [index, secret] of (await secrets()).entries()) expect(secret).not.toBe(before[index])
  expect(await isVerified()).toBe(true)
})
