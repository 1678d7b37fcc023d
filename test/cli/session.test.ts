import { existsSync, statSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { anonymousClient } from '@platform/cli/api/client'
import { unreachableMessage } from '@platform/cli/api/unreachable'
import { messageOf } from '@platform/cli/exit'
import { readText } from '@platform/cli/jobs/script'
import { ProxyError } from '@platform/relay/proxy'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startServer } from '../support/http-server.ts'
import { missingPrograms } from '../support/installed-programs.ts'
import { isLong } from '../support/long.ts'
import { type Ended, Plat } from '../support/plat.ts'
import { PlatformProcess } from '../support/platform.ts'
import { Program } from '../support/program.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startTlsFront } from '../support/tls-front.ts'
import { waitFor } from '../support/wait-for.ts'
import { logIn, password } from './support/environment.ts'
import { type Proxy, startProxy } from './support/proxy.ts'

const resources = new AsyncDisposableStack()
let proxy: Proxy
let plat: Plat
let beforeSetup: Ended
let folder: string

beforeAll(async () => {
  const platform = resources.use(
    await PlatformProcess.start({ PLAT_LIMIT_API_PER_MINUTE: '100000', PLAT_LIMIT_API_BURST: '1000' }),
  )
  proxy = resources.use(await startProxy(platform.url))
  folder = resources.use(await temporaryFolder()).path
  plat = new Plat(folder, { PLAT_SERVER: proxy.url })
  beforeSetup = await plat.with({ PLAT_PASSWORD: 'wrong' }).run(['login', '--username', 'ada'])
  await platform.setUp()
})
afterAll(() => resources.disposeAsync())

beforeEach(async () => {
  const isSignedIn = existsSync(file('contexts/default.json')) && (await readSession()).accessToken !== undefined
  if (!isSignedIn) await logIn(plat)
  proxy.requests.length = 0
})

const file = (name: string) => join(folder, 'config/plat', name)
const readSession = async (): Promise<any> => JSON.parse(await readFile(file('contexts/default.json'), 'utf8'))
const changeSession = async (fields: object) =>
  writeFile(file('contexts/default.json'), JSON.stringify({ ...(await readSession()), ...fields }))
const countWaiting = async () =>
  (await readdir(file('contexts'))).filter((name) => name.startsWith('default.lock.')).length
const countRequests = (begin: string) => proxy.requests.filter((line) => line.startsWith(begin)).length

test('stores a session readable only by its owner, without the password', async () => {
  expect(statSync(file('contexts/default.json')).mode & 0o777).toBe(0o600)
  expect(statSync(file('.')).mode & 0o777).toBe(0o700)
  expect(await readFile(file('contexts/default.json'), 'utf8')).not.toContain(password)
  expect(await plat.json(['whoami'])).toMatchObject({ username: 'ada' })
})

test('exits with 1 for a wrong password, or before the setup, and stores nothing', async () => {
  const message = `The platform is not set up yet. Open ${proxy.url} in a browser.\n`
  expect(beforeSetup).toMatchObject({ exitCode: 1, err: message })
  const otherPlat = plat.with({ XDG_CONFIG_HOME: join(folder, 'other'), PLAT_PASSWORD: 'wrong' })
  const { exitCode, err } = await otherPlat.run(['login', '--username', 'unknown'])
  expect([exitCode, err.includes('invalid_credentials')]).toEqual([1, true])
  expect((await otherPlat.run(['whoami'])).exitCode).toBe(3)
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
  const newFolder = join(folder, 'fresh')
  const automation = plat.with({ XDG_CONFIG_HOME: newFolder, PLAT_TOKEN: token })
  expect(await automation.json(['cluster', 'list'])).toMatchObject({ items: [] })
  const rejectedRun = await automation.run(['cluster', 'register', 'berlin-1'])
  expect(rejectedRun).toMatchObject({
    exitCode: 1,
    err: expect.stringContaining('Required permission: clusters:write'),
  })
  expect(existsSync(newFolder)).toBe(false)
  expect((await plat.with({ PLAT_TOKEN: 'plat_wrong' }).run(['cluster', 'list'])).exitCode).toBe(3)
})

test.each([
  ['/proc', 'Cannot use the folder /proc/.config/plat: ENOENT'],
  ['/dev/null', 'Cannot use the folder /dev/null/.config/plat: ENOTDIR'],
  ['', 'This user has no home folder.'],
])('explains that the home folder %j cannot be used, unless PLAT_TOKEN is set', async (home, message) => {
  const platWithoutHome = plat.with({ HOME: home, XDG_CONFIG_HOME: undefined })
  const withToken = platWithoutHome.with({ PLAT_TOKEN: (await readSession()).accessToken })
  const [{ exitCode, err }, me] = await Promise.all([
    platWithoutHome.run(['login', '--username', 'ada']),
    withToken.json(['whoami']),
  ])
  expect([exitCode, err]).toEqual([3, expect.stringContaining(message)])
  expect(me).toMatchObject({ username: 'ada' })
})

test.each([
  ['latin 1', Buffer.from('echo caf\xe9\n', 'latin1'), 9],
  ['an incomplete character', Buffer.concat([Buffer.from('echo '), Buffer.of(0xf0, 0x9f)]), 7],
  ['UTF-16', Buffer.from('\ufeffecho', 'utf16le'), 0],
])('rejects a script in %s with the offset of the first invalid byte', async (_, bytes, offset) => {
  const script = join(folder, 'script')
  await writeFile(script, bytes)
  const message = expect.stringContaining(`offset ${offset} is invalid`)
  await expect(readText(script)).rejects.toMatchObject({ exitCode: 2, message })
})

test('concurrent processes renew a session once', async () => {
  await changeSession({ expiresAtMs: 0 })
  const otherCount = 2
  const holdUntil = waitFor('the other processes to wait or renew', async () => {
    return (await countWaiting()) === otherCount || countRequests('POST /api/v1/auth/refresh') > otherCount
  })
  proxy.inject('POST /api/v1/auth/refresh', { holdUntil })
  const results = await Promise.all(Array.from({ length: 1 + otherCount }, () => plat.run(['whoami'])))
  expect(results.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0])
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

test.for(['a dead process', 'a zombie'])('takes over the lock of %s', async (holder) => {
  // The shell becomes a program that does not wait for its child. The child runs until then, because a shell would wait.
  const child = 'while read -r name </proc/$$/comm && [ "$name" = sh ]; do :; done'
  const script = `(${child}) & echo $!; exec sleep 60`
  await using parent = new Program('sh', ['-c', script], { cwd: file('contexts'), env: process.env })
  await parent.writes(/\n/)
  const isZombie = async () => (await readFile(`/proc/${Number(parent.text)}/stat`, 'utf8')).includes(') Z ')
  if (holder === 'a zombie') await waitFor('the zombie', isZombie)
  const pid = holder === 'a zombie' ? Number(parent.text) : 999_999_999
  await writeFile(file('contexts/default.lock'), `${pid} ${hostname()} dead`)
  await changeSession({ expiresAtMs: 0 })
  expect((await plat.run(['whoami'])).exitCode).toBe(0)
  expect(existsSync(file('contexts/default.lock'))).toBe(false)
})

test('removes an ended session and explains how to sign in', async () => {
  await changeSession({ expiresAtMs: 0, refreshToken: 'sess_00000000000000000000000000.000000000000.x' })
  const { exitCode, err } = await plat.run(['whoami'])
  expect([exitCode, err]).toEqual([3, 'Your session has ended. Run: plat login\n'])
  expect(await readSession()).toEqual({ server: proxy.url, username: 'ada' })
})

test.runIf(isLong)('keeps a session if the platform is unreachable during its renewal', async () => {
  await changeSession({ expiresAtMs: 0 })
  proxy.inject('POST /api/v1/auth/refresh', { status: 502 }, { status: 503, headers: { 'retry-after': '1' } })
  expect((await plat.run(['whoami'])).exitCode).toBe(0)
})

test('does not continue as another user who signed in during the command', async () => {
  await changeSession({ expiresAtMs: 0 })
  const lock = `${process.pid} ${hostname()} test`
  await writeFile(file('contexts/default.lock'), lock)
  const runningPlat = plat.run(['whoami'])
  await waitFor('the process to wait for the lock', async () => (await countWaiting()) === 1)
  await changeSession({ username: 'grace', refreshToken: 'another', expiresAtMs: Date.now() + 600_000 })
  await rm(file('contexts/default.lock'))
  expect((await runningPlat).exitCode).toBe(3)
  expect((await readSession()).username).toBe('grace')
  await rm(file('contexts/default.json'))
})

test('adopts the session of an earlier version, also in two processes at once', async () => {
  await rename(file('contexts/default.json'), file('session.json'))
  await chmod(file('session.json'), 0o644)
  const results = await Promise.all([plat.run(['whoami']), plat.run(['whoami'])])
  expect(results.map(({ exitCode }) => exitCode)).toEqual([0, 0])
  expect(existsSync(file('session.json'))).toBe(false)
  expect(statSync(file('contexts/default.json')).mode & 0o777).toBe(0o600)
  expect(await readdir(file('contexts'))).toEqual(['default.json'])
})

test('keeps contexts apart: each has a server and a session, and tokens are sent only to that server', async () => {
  await using otherProxy = await startProxy(proxy.url)
  const { exitCode, err } = await plat.with({ PLAT_SERVER: otherProxy.url }).run(['whoami'])
  expect([exitCode, err.includes(proxy.url)]).toEqual([3, true])
  const shell = plat.with({ PLAT_SERVER: undefined })
  await shell.prints(['context', 'add', 'other', '--server', otherProxy.url])
  const refusedCommands = [
    [2, `belongs to ${otherProxy.url}`, 'context add other --server', proxy.url],
    [2, `belongs to ${otherProxy.url}`, 'login --context other --server', proxy.url],
    [2, '"../x" is not a name', 'context use', '../x'],
    [3, `Not signed in to ${otherProxy.url}. Run: plat login --context other\n`, '--context other', 'whoami'],
    [3, 'See: plat context list', 'whoami --context', 'nowhere'],
    [3, 'There is no context nowhere.', 'cluster --context nowhere', 'list'],
  ] as const
  const results = await Promise.all(refusedCommands.map(([, , line, last]) => shell.run([...line.split(' '), last])))
  expect(results).toMatchObject(
    refusedCommands.map(([exitCode, text]) => ({ exitCode, err: expect.stringContaining(text) })),
  )
  const runWithoutName = await shell.with({ PLAT_TOKEN: 'plat_wrong', PLAT_CONTEXT: 'other' }).run(['whoami'])
  expect([runWithoutName.exitCode, runWithoutName.err.includes('Set PLAT_SERVER')]).toEqual([2, true])
  expect(otherProxy.requests).toEqual([])

  // The server of a sign-in selects the context, and the sign-in makes it current.
  expect(
    await shell.run(['login', '--server', otherProxy.url, '--username', 'ada', '--password-stdin'], password),
  ).toMatchObject({
    err: `Signed in to ${otherProxy.url} as ada. Context: other.\n`,
  })
  expect(statSync(file('contexts/other.json')).mode & 0o777).toBe(0o600)
  await shell.with({ PLAT_TOKEN: 'plat_wrong', PLAT_SERVER: proxy.url }).prints(['whoami', '--context', 'other'])
  expect(otherProxy.requests).toContain('GET /api/v1/auth/me')
  const list = await shell.prints(['context', 'list'])
  expect(list).toMatch(
    new RegExp(`^- +default +${proxy.url} +ada +Signed in\n\\* +other +${otherProxy.url} +ada +Signed in$`, 'm'),
  )
  const shownContext = await shell.json(['context', 'show'])
  expect(shownContext).toEqual({
    name: 'other',
    current: true,
    server: otherProxy.url,
    username: 'ada',
    status: 'Signed in',
  })

  await shell.prints(['logout'])
  expect(await shell.json(['context', 'show'])).toMatchObject({ username: 'ada', status: 'Signed out' })
  proxy.requests.length = 0
  await shell.with({ PLAT_CONTEXT: 'default' }).prints(['whoami'])
  expect(proxy.requests).toEqual(['GET /api/v1/auth/me'])
  await shell.prints(['context', 'use', 'default'])
  await shell.prints(['context', 'remove', 'other', '--yes'])
  expect(await shell.prints(['context', 'list', '--names'])).toBe('default\n')
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

const noTls = missingPrograms('openssl')
test.skipIf(noTls !== '')(`explains why a platform cannot be reached, and exits with 4${noTls}`, async () => {
  const stoppedProxy = await startProxy(proxy.url)
  await stoppedProxy[Symbol.asyncDispose]()
  await using tls = await startTlsFront(proxy.url)
  await using silentServer = await startServer(() => new Promise(() => {}))
  const messageFor = async (server: string): Promise<string> => {
    const failedRequest = anonymousClient(server, { retrySeconds: 0, responseTimeoutSeconds: 0.3 }).GET(
      '/api/v1/auth/me',
      {},
    )
    const error: unknown = await failedRequest.catch((error: unknown) => error)
    expect(error).toMatchObject({ exitCode: 4 })
    return messageOf(error)
  }
  expect(await messageFor(stoppedProxy.url)).toMatch(/: nothing listens there \(ECONNREFUSED\)\. Check the address/)
  expect(await messageFor('http://nowhere.invalid')).toMatch(/: the name .* \(E[A-Z_]+\)\. Check/)
  expect(await messageFor(tls.url)).toMatch(/: its certificate is not trusted \(\w+\)\. .*NODE_EXTRA_CA_CERTS/)
  expect(await messageFor(proxy.url.replace('http:', 'https:'))).toMatch(
    /: the TLS handshake failed \(EPROTO\)\. Check the port/,
  )
  expect(await messageFor(silentServer.url)).toMatch(/\(No complete response within 0\.3 s\.\)\. Check the address/)
  const explained = unreachableMessage(new URL(proxy.url), new ProxyError('the proxy p refuses; check its settings'))
  expect(explained).toBe(`No response from ${proxy.url}: the proxy p refuses; check its settings.`)
})

test('opens the portal at a resource, without a shell, or prints the address', async () => {
  const id = 'batch_01jd8w5k3zr9x2m4c7t6v0b1qa'
  const tools = join(folder, 'tools')
  await mkdir(tools, { recursive: true })
  await writeFile(join(tools, 'xdg-open'), `#!/bin/sh\nprintf '<%s>' "$@" > '${tools}/opened'\n`, { mode: 0o755 })
  const browser = plat.with({ DISPLAY: ':0', PATH: `${tools}:${process.env['PATH']}` })
  const [printed, opened, dashboard, invalid, noUpdate, noSite, ...others] = await Promise.all([
    plat.run(['open', 'batch', id]),
    browser.run(['open', 'module', '$(touch x)&b']),
    plat.run(['open', '--print']),
    plat.run(['open', 'job', '../settings']),
    plat.run(['open', 'relay-update', 'x&y']),
    plat.run(['open', 'site', '../settings']),
    plat.run(['open', 'enrollment-key']),
    plat.run(['open', 'relay-update', id.replace('batch', 'rupd')]),
    plat.run(['open', 'site', id.replace('batch', 'site')]),
  ])
  expect(printed).toMatchObject({ exitCode: 0, out: `${proxy.url}/jobs/batches/${id}\n` })
  expect(opened).toMatchObject({ exitCode: 0, out: '' })
  expect(await readFile(join(tools, 'opened'), 'utf8')).toBe(`<${proxy.url}/modules?module=%24(touch%20x)%26b>`)
  expect(dashboard.out).toBe(`${proxy.url}/dashboard\n`)
  expect(others.map(({ out }) => out.replace(proxy.url, '').trim())).toEqual([
    '/clusters/enrollment-keys',
    `/clusters/relay-updates?update=${id.replace('batch', 'rupd')}`,
    `/clusters?selector=platform%2Fsite%3D${id.replace('batch', 'site')}`,
  ])
  expect(invalid).toMatchObject({ exitCode: 2, err: expect.stringContaining('plat job list') })
  expect(noUpdate).toMatchObject({ exitCode: 2, err: expect.stringContaining('plat relay update list') })
  expect(noSite).toMatchObject({ exitCode: 1, err: expect.stringContaining('plat site list') })
})

// Retries take several seconds.
test.runIf(isLong)('exits with 4 without a response', async () => {
  const stoppedProxy = await startProxy(proxy.url)
  await stoppedProxy[Symbol.asyncDispose]()
  const cli = plat.with({ PLAT_SERVER: stoppedProxy.url, PLAT_TOKEN: 'any' })
  expect(await cli.run(['whoami'])).toMatchObject({ exitCode: 4, err: expect.stringContaining('ECONNREFUSED') })
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
  const allClusters = await plat.json(['cluster', 'list', '--type', 'CloudLocal', '--all'])
  expect(allClusters.items.map(({ name }: any) => name).toSorted()).toEqual(names.toSorted())
  expect((await plat.json(['cluster', 'list', '--type', 'CloudLocal', '--limit', '3'])).items).toHaveLength(3)
  expect(await plat.json(['cluster', 'get', 'PAGE-0'])).toMatchObject({ name: 'page-0' })
})
