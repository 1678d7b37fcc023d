import { expect, test } from 'vitest'
import { logIn } from '../cli/support/environment.ts'
import { Plat } from '../support/plat.ts'
import { options, PlatformProcess } from '../support/platform.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const networks = 1000
const guesses = 10_000
const concurrency = 32

test('of 10,000 guesses from 1,000 networks at most 100 are compared, and known browsers and sessions work', async () => {
  await using platform = await PlatformProcess.start({ PLAT_TRUSTED_PROXIES: '127.0.0.1' })
  await platform.setUp()
  await using folder = await temporaryFolder()
  const plat = new Plat(folder.path, { PLAT_SERVER: platform.url })
  await logIn(plat)

  const post = async (path: string, body: object, headers: Record<string, string>) => {
    const forwardedHeaders = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'platform.example.com', ...headers }
    const response = await fetch(`${platform.url}/api/v1/auth/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...forwardedHeaders },
      body: JSON.stringify(body),
    })
    await response.arrayBuffer()
    return response
  }
  const signInBrowser = (cookie: string) =>
    post('session', options, { 'sec-fetch-site': 'same-origin', 'x-forwarded-for': '203.0.113.7', cookie })
  const cookies = (await signInBrowser('')).headers.getSetCookie().map((cookie) => cookie.split(';')[0] ?? '')
  const device = cookies.find((cookie) => cookie.startsWith('__Host-plat_device=')) ?? ''

  const statuses: Record<number, number> = {}
  const startedMs = performance.now()
  let guessCount = 0
  const guess = async () => {
    while (guessCount < guesses) {
      const network = guessCount++ % networks
      const address = `10.${network >> 8}.${network & 255}.${1 + (guessCount % 250)}`
      const wrongCredentials = { ...options, password: `guess ${guessCount}` }
      const { status } = await post('login', wrongCredentials, { 'x-forwarded-for': address })
      statuses[status] = (statuses[status] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: concurrency }, guess))
  const seconds = Math.round((performance.now() - startedMs) / 1000)

  const measureTime = async <Result>(work: () => Promise<Result>): Promise<[Result, number]> => {
    const beganMs = performance.now()
    return [await work(), performance.now() - beganMs]
  }
  const [knownDevice, browserMs] = await measureTime(() => signInBrowser(device))
  const [whoami, platMs] = await measureTime(() => plat.json(['whoami']))
  process.stdout.write(
    `${guesses} guesses in ${seconds} s: ${JSON.stringify(statuses)}; known browser ${Math.round(browserMs)} ms, plat ${Math.round(platMs)} ms\n`,
  )
  expect(Object.keys(statuses)).toEqual(['401', '429'])
  expect(statuses[401]).toBeLessThanOrEqual(100)
  expect((await signInBrowser('')).status).toBe(429)
  expect(knownDevice.status).toBe(200)
  expect(whoami).toMatchObject({ username: 'ada' })
  expect([browserMs < 2000, platMs < 2000]).toEqual([true, true])
})
