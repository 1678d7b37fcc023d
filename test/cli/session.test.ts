import { existsSync, statSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { isLong } from '../support/long.ts'
import { Plat } from '../support/plat.ts'
import { PlatformProcess } from '../support/platform.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { logIn, password } from './support/environment.ts'
import { type Proxy, startProxy } from './support/proxy.ts'

const resources = new AsyncDisposableStack()
let proxy: Proxy
let plat: Plat
let folder: string

beforeAll(async () => {
  const platform = resources.use(
    await PlatformProcess.start({ PLAT_LIMIT_API_PER_MINUTE: '100000', PLAT_LIMIT_API_BURST: '1000' }),
  )
  await platform.setUp()
  proxy = resources.use(await startProxy(platform.url))
  folder = resources.use(await temporaryFolder()).path
  plat = new Plat(folder, { PLAT_SERVER: proxy.url })
})
afterAll(() => resources.disposeAsync())

beforeEach(async () => {
  if (!existsSync(file('session.json'))) await logIn(plat)
  proxy.requests.length = 0
})

const file = (name: string) => join(folder, 'config/plat', name)
const readSession = async (): Promise<any> => JSON.parse(await readFile(file('session.json'), 'utf8'))
const changeSession = async (fields: object) =>
  writeFile(file('session.json'), JSON.stringify({ ...(await readSession()), ...fields }))
const countWaiting = async () => (await readdir(file('.'))).filter((name) => name.startsWith('session.lock.')).length
const countRequests = (begin: string) => proxy.requests.filter((line) => line.startsWith(begin)).length

test('stores a session readable only by its owner, without the password', async () => {
  expect(statSync(file('session.json')).mode & 0o777).toBe(0o600)
  expect(statSync(file('.')).mode & 0o777).toBe(0o700)
  expect(await readFile(file('session.json'), 'utf8')).not.toContain(password)
  expect(await plat.json(['whoami'])).toMatchObject({ username: 'ada' })
})

test('exits with 1 for a wrong password and stores nothing', async () => {
  const other = plat.with({ XDG_CONFIG_HOME: join(folder, 'other'), PLAT_PASSWORD: 'wrong' })
  const { exitCode, err } = await other.run(['login', '--username', 'unknown'])
  expect([exitCode, err.includes('invalid_credentials')]).toEqual([1, true])
  expect((await other.run(['whoami'])).exitCode).toBe(3)
})

test('logout ends the session on the platform', async () => {
  const { refreshToken } = await readSession()
  await plat.prints(['logout'])
  expect((await plat.run(['whoami'])).exitCode).toBe(3)
  const body = JSON.stringify({ refreshToken })
  const headers = { 'content-type': 'application/json' }
  expect((await fetch(`${proxy.url}/api/v1/auth/refresh`, { method: 'POST', headers, body })).status).toBe(401)
})

test('prefers the token of the environment over the session and does not store it', async () => {
  const { token } = await plat.json(['token', 'create', 'automation', '--permission', 'clusters:read'])
  const fresh = join(folder, 'fresh')
  const automation = plat.with({ XDG_CONFIG_HOME: fresh, PLAT_TOKEN: token })
  expect(await automation.json(['cluster', 'list'])).toMatchObject({ items: [] })
  const rejected = await automation.run(['cluster', 'register', 'berlin-1'])
  expect(rejected).toMatchObject({ exitCode: 1, err: expect.stringContaining('Required permission: clusters:write') })
  expect(existsSync(fresh)).toBe(false)
  expect((await plat.with({ PLAT_TOKEN: 'plat_wrong' }).run(['cluster', 'list'])).exitCode).toBe(3)
})

test.each([
  ['/proc', 'Cannot use the folder /proc/.config/plat: ENOENT'],
  ['/dev/null', 'Cannot use the folder /dev/null/.config/plat: ENOTDIR'],
  ['', 'This user has no home folder.'],
])('explains that the home folder %j cannot be used, unless PLAT_TOKEN is set', async (home, message) => {
  const homeless = plat.with({ HOME: home, XDG_CONFIG_HOME: undefined })
  const { exitCode, err } = await homeless.run(['login', '--username', 'ada'])
  expect([exitCode, err]).toEqual([3, expect.stringContaining(message)])
  const { token } = await plat.json(['token', 'create', `home ${home}`])
  expect(await homeless.with({ PLAT_TOKEN: token }).json(['whoami'])).toMatchObject({ username: 'ada' })
})

test.each([
  ['latin 1', Buffer.from('echo caf\xe9\n', 'latin1'), 9],
  ['an incomplete character', Buffer.concat([Buffer.from('echo '), Buffer.of(0xf0, 0x9f)]), 7],
  ['UTF-16', Buffer.from('\ufeffecho', 'utf16le'), 0],
])('rejects a script in %s with the offset of the first invalid byte', async (_, bytes, offset) => {
  await writeFile(join(folder, 'script'), bytes)
  for (const command of [
    ['run', '--cluster', 'x', '-f'],
    ['batch', 'submit'],
  ]) {
    const { exitCode, err } = await plat.run([...command, join(folder, 'script')])
    expect([exitCode, err]).toEqual([2, expect.stringContaining(`offset ${offset} is invalid`)])
  }
})

test('concurrent processes renew a session once', async () => {
  await changeSession({ expiresAtMs: 0 })
  const others = 2
  const holdUntil = waitFor('the other processes to wait or renew', async () => {
    return (await countWaiting()) === others || countRequests('POST /api/v1/auth/refresh') > others
  })
  proxy.inject('POST /api/v1/auth/refresh', { holdUntil })
  const ended = await Promise.all(Array.from({ length: 1 + others }, () => plat.run(['whoami'])))
  expect(ended.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0])
  expect(countRequests('POST /api/v1/auth/refresh')).toBe(1)
  await changeSession({ expiresAtMs: 0 })
  expect((await plat.run(['whoami'])).exitCode).toBe(0)
})

test('renews an expired access token and repeats the request', async () => {
  proxy.inject('GET /api/v1/auth/me', { status: 401, body: '{"error":"token_expired","message":"","traceId":""}' })
  expect(await plat.json(['whoami'])).toMatchObject({ username: 'ada' })
  expect(countRequests('POST /api/v1/auth/refresh')).toBe(1)
})

test('keeps the session if the response to a renewal is lost, also in an earlier command', async () => {
  await changeSession({ expiresAtMs: 0 })
  proxy.inject('POST /api/v1/auth/refresh', 'drop response')
  expect((await plat.run(['whoami'])).exitCode).toBe(0)
  const renewalKey = 'key-of-a-killed-command'
  const body = JSON.stringify({ refreshToken: (await readSession()).refreshToken })
  const headers = { 'content-type': 'application/json', 'idempotency-key': renewalKey }
  expect((await fetch(`${proxy.url}/api/v1/auth/refresh`, { method: 'POST', headers, body })).status).toBe(200)
  await changeSession({ expiresAtMs: 0, renewalKey })
  expect((await plat.run(['whoami'])).exitCode).toBe(0)
  expect(await readSession()).not.toHaveProperty('renewalKey')
})

test.runIf(isLong)('takes over the lock of a dead process', async () => {
  await mkdir(file('.'), { recursive: true })
  await writeFile(file('session.lock'), `999999999 ${hostname()} dead`)
  await changeSession({ expiresAtMs: 0 })
  expect((await plat.run(['whoami'])).exitCode).toBe(0)
  expect(existsSync(file('session.lock'))).toBe(false)
})

test('removes an ended session and explains how to sign in', async () => {
  await changeSession({ expiresAtMs: 0, refreshToken: 'sess_00000000000000000000000000.000000000000.x' })
  const { exitCode, err } = await plat.run(['whoami'])
  expect([exitCode, err.includes('plat login')]).toEqual([3, true])
  expect(existsSync(file('session.json'))).toBe(false)
})

test.runIf(isLong)('keeps a session if the platform is unreachable during its renewal', async () => {
  await changeSession({ expiresAtMs: 0 })
  proxy.inject('POST /api/v1/auth/refresh', { status: 502 }, { status: 503, headers: { 'retry-after': '1' } })
  expect((await plat.run(['whoami'])).exitCode).toBe(0)
})

test('does not continue as another user who signed in during the command', async () => {
  await changeSession({ expiresAtMs: 0 })
  const lock = `${process.pid} ${hostname()} test`
  await writeFile(file('session.lock'), lock)
  const running = plat.run(['whoami'])
  await waitFor('the process to wait for the lock', async () => (await countWaiting()) === 1)
  await changeSession({ username: 'grace', refreshToken: 'another', expiresAtMs: Date.now() + 600_000 })
  await rm(file('session.lock'))
  expect((await running).exitCode).toBe(3)
  expect((await readSession()).username).toBe('grace')
  await rm(file('session.json'))
})

test('never sends tokens of the session to another server', async () => {
  await using other = await startProxy(proxy.url)
  const { exitCode, err } = await plat.with({ PLAT_SERVER: other.url }).run(['whoami'])
  expect([exitCode, err.includes(proxy.url)]).toEqual([3, true])
  expect(other.requests).toEqual([])
})

test('submits a job once if its response is lost', async () => {
  const name = 'lossy-1'
  await plat.prints(['cluster', 'register', name])
  proxy.inject('POST /api/v1/jobs', 'drop response', { status: 503, headers: { 'retry-after': '1' }, body: '{}' })
  const id = (await plat.prints(['run', '--cluster', name, '--detach', '--', 'true'])).trim()
  expect(countRequests('POST /api/v1/jobs')).toBe(3)
  const { items } = await plat.json(['job', 'list', '--cluster', name])
  expect(items.map((job: any) => job.id)).toEqual([id])
})

test.runIf(isLong)('removes a cluster if the response is lost', async () => {
  await plat.prints(['cluster', 'register', 'lossy-2'])
  proxy.inject('DELETE /api/v1/clusters', 'drop response')
  expect(await plat.json(['cluster', 'delete', 'lossy-2', '--yes'])).toMatchObject({ deleted: true })
})

test.runIf(isLong)('does not report the removal of a resource that never existed after a 429', async () => {
  proxy.inject('DELETE /api/v1/sites', { status: 429, headers: { 'retry-after': '1' }, body: '{}' })
  const { exitCode, err } = await plat.run(['site', 'delete', 'site_01jd8w5k3zr9x2m4c7t6v0b1qa'])
  expect([exitCode, err.includes('site_not_found')]).toEqual([1, true])
})

const html = { headers: { 'content-type': 'text/html' }, body: '<h1>No</h1>' }

test.for([
  ['404', { status: 404, ...html }],
  ['https://platform.example.com/', { status: 301, headers: { location: 'https://platform.example.com/' } }],
  ['', { status: 200, ...html }],
] as const)('exits with 4 and "%s" if the server is not a platform', async ([shown, response]) => {
  proxy.inject('GET /api/v1/auth/me', response)
  expect(await plat.run(['whoami'])).toMatchObject({ exitCode: 4, err: expect.stringContaining(shown) })
})

// Retries take several seconds.
test.runIf(isLong)('exits with 4 without a response', async () => {
  const stopped = await startProxy(proxy.url)
  await stopped[Symbol.asyncDispose]()
  const unreachable = plat.with({ PLAT_SERVER: stopped.url, PLAT_TOKEN: 'any' })
  expect(await unreachable.run(['whoami'])).toMatchObject({ exitCode: 4, err: expect.stringContaining('ECONNREFUSED') })
})

test.runIf(isLong)('finds and lists clusters on every page', async () => {
  const names = Array.from({ length: 105 }, (_, index) => `page-${index}`)
  const { accessToken } = await readSession()
  const headers = { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json' }
  const registering = names.map(async (name) => {
    const body = JSON.stringify({ name, type: 'CloudLocal' })
    return (await fetch(`${proxy.url}/api/v1/clusters`, { method: 'POST', headers, body })).status
  })
  expect(new Set(await Promise.all(registering))).toEqual(new Set([201]))
  const all = await plat.json(['cluster', 'list', '--type', 'CloudLocal', '--all'])
  expect(all.items.map(({ name }: any) => name).toSorted()).toEqual(names.toSorted())
  expect((await plat.json(['cluster', 'list', '--type', 'CloudLocal', '--limit', '3'])).items).toHaveLength(3)
  expect(await plat.json(['cluster', 'get', 'PAGE-0'])).toMatchObject({ name: 'page-0' })
})
