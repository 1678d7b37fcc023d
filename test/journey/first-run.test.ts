import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { listenAt } from '@platform/local/listening'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { healthChecksOf, findCatalogItem, waitForJobEnd } from '../conformance/support/modules.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { processesOf, waitForModuleCleanup } from '../support/module-cleanup.ts'
import { isLong } from '../support/long.ts'
import { PlatformProcess } from '../support/platform.ts'
import { launchChromium, skipReason } from '../support/portal/chromium.ts'
import type { Program } from '../support/program.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { waitForFileScript } from '../support/script.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { waitFor } from '../support/wait-for.ts'

/** The first use of a new platform, from its start to the removal of a cluster. The tests run in order. */

const resources = new AsyncDisposableStack()
let platform: PlatformProcess
let api: Platform
let admin: Client
let organisationId: string
let cluster: any
let relay: Program
let folder: string

beforeAll(async () => {
  const settings = { PLAT_FUNCTION_THREADS: '2', PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: '1' }
  platform = resources.use(await PlatformProcess.start(settings))
  folder = resources.use(await temporaryFolder()).path
})
afterAll(() => resources.disposeAsync())

const finishedJob = (jobId: string) =>
  waitFor(`the end of ${jobId}`, async () => {
    const job = await api.job(jobId)
    return job.completedAt !== undefined && job
  })

test('the printed command prints the initial admin token, which completes setup', async () => {
  const body: any = await platform.setupBody()
  expect(body.initialAdminToken).toMatch(/^\S+$/)
  api = await platform.api()
  expectStatus(await api.anonymous.post('/api/v1/setup/complete', body), 200)
  admin = await api.admin
  const me = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  expect(me).toMatchObject({ roles: ['PlatformAdmin'] })
  organisationId = me.organisationId
})

test('the printed relay command connects a registered cluster', async () => {
  cluster = await api.newCluster()
  relay = resources.use(runRelayCommand(cluster.relayCommand, folder))
  await waitFor('a Healthy cluster', async () => (await api.cluster(cluster.id)).status === 'Healthy')
  const connectedCluster = { nodeCount: 1, nodes: [{ status: 'Online' }], relay: { status: 'Connected' } }
  expect(await api.cluster(cluster.id)).toMatchObject(connectedCluster)
})

test('returns the output of a script while it runs, and its exit code', async () => {
  const file = join(folder, 'continue')
  const script = `echo "Ω $((6 * 7))"; ${waitForFileScript(file)}; echo second; exit 7`
  const jobId = await api.submit(cluster.id, { script })
  const read = async (offset: number) =>
    expectStatus(await admin.get(`/api/v1/jobs/${jobId}/output?offset=${offset}`), 200)
  const output = await waitFor('the first line', async () => {
    const firstOutput = await read(0)
    return firstOutput.items.length > 0 && firstOutput
  })
  expect(output).toMatchObject({ items: [{ data: 'Ω 42\n' }], nextOffset: 6, status: 'Running', finished: false })
  await writeFile(file, '')
  expect(await finishedJob(jobId)).toMatchObject({
    status: 'Failed',
    statusReason: 'exit_nonzero',
    result: { exitCode: 7, output: 'Ω 42\nsecond\n', truncated: false },
  })
  expect(await read(6)).toMatchObject({ items: [{ data: 'second\n' }], status: 'Failed', finished: true })
})

test('a removed cluster no longer accepts its relay', async () => {
  expectStatus(await admin.delete(`/api/v1/clusters/${cluster.id}`), 204)
  expectStatus(await admin.get(`/api/v1/clusters/${cluster.id}`), 404, 'cluster_not_found')
  await relay.writes(/does not accept the identity of this relay/)
  // The relay retries with increasing delays before it ends.
  if (isLong) expect(await relay.ended).toMatchObject({ exitCode: 4 })
})

const processIds = async () => (await processesOf(organisationId, 'hello')).map(({ processId }) => processId)
const expectHealthy = () =>
  waitFor('a Healthy hello-module', async () =>
    (await healthChecksOf(api, 'hello')).some(({ name, status }) => name === 'hello-module' && status === 'Healthy'),
  )

test('installs the verified reference module as a job with steps', async () => {
  expect(await findCatalogItem(admin, 'hello')).toMatchObject({ verified: true, verifiedBy: 'this platform' })
  const job = await waitForJobEnd(api, expectStatus(await admin.post('/api/v1/modules/hello/install', {}), 202))
  expect(job).toMatchObject({ type: 'ModuleInstall', status: 'Completed', result: { exitCode: 0 } })
  const names = ['verify', 'deploy', 'configure', 'start', 'probe', 'publish']
  expect(job.steps.map(({ name, status }: any) => [name, status])).toEqual(names.map((name) => [name, 'Completed']))
  await expectHealthy()
  await platform.writes(/"The hello module is alive"/)
})

test.runIf(isLong).for(['stop', 'kill'] as const)(
  'restarts the module after a %s of the platform, and leaves no old process',
  async (end) => {
    const processesBefore = await processIds()
    expect(processesBefore.length).toBeGreaterThan(0)
    await platform[end]()
    await waitFor('the end of all processes of hello', async () => (await processIds()).length === 0)
    await platform.restart()
    await waitFor('hello', async () => (await admin.get('/api/hello')).status === 200)
    expect((await processIds()).some((id) => processesBefore.includes(id))).toBe(false)
    await expectHealthy()
  },
)

test('uninstalls the module without leaving files, processes or database entries', async () => {
  const job = await waitForJobEnd(api, expectStatus(await admin.delete('/api/v1/modules/hello'), 202))
  expect(job).toMatchObject({ type: 'ModuleUninstall', status: 'Completed' })
  expect(await findCatalogItem(admin, 'hello')).toMatchObject({ installed: false })
  await waitForModuleCleanup(platform)
  expect(await processIds()).toEqual([])
})

/** Serves a page on another port of the same host. Browsers treat it as same-site, so its requests carry cookies. */
async function startOtherOrigin() {
  const server = createServer((_, response) => void response.setHeader('content-type', 'text/html').end('<body>'))
  const { port } = await listenAt(server, '127.0.0.1', 0)
  const close = async () => {
    const closed = once(server, 'close')
    server.closeAllConnections()
    server.close()
    await closed
  }
  return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: close }
}

test.skipIf(skipReason !== '')(
  `a browser session uses cookies that another origin can neither use, replace nor end ${skipReason}`,
  async () => {
    await using otherOrigin = await startOtherOrigin()
    const browser = await launchChromium()
    await using _ = { [Symbol.asyncDispose]: () => browser.close() }
    const context = await browser.newContext()
    const page = await context.newPage()
    const credentials = { username: 'ada', password: 'correct horse battery' }

    const call = (path: string, method = 'GET', body?: object): Promise<[number, any]> =>
      page.evaluate(
        async ([address, verb, json]) => {
          const headers = { 'content-type': 'application/json' }
          const response = await fetch(address, { method: verb, ...(json && { headers, body: json }) })
          return [response.status, JSON.parse((await response.text()) || 'null')] as [number, unknown]
        },
        [path, method, body === undefined ? '' : JSON.stringify(body)] as const,
      )
    const countSites = async () => (await admin.get('/api/v1/sites')).body.items.length

    // Same origin, and without a content security policy.
    const ownPage = `${platform.url}/health/live`
    await page.goto(ownPage)
    expect(await call('/api/v1/auth/session', 'POST', credentials)).toEqual([200, { expiresIn: 900 }])
    expect(await call('/api/v1/auth/me')).toMatchObject([200, { username: 'ada' }])
    expect(await call('/api/v1/sites', 'POST', { name: 'from the portal' })).toMatchObject([201, {}])
    expect(await page.evaluate('document.cookie')).toBe('')
    const cookies = await context.cookies()
    expect(cookies.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite])).toEqual([
      ['plat_access', true, 'Strict'],
      ['plat_refresh', true, 'Strict'],
      ['plat_device', true, 'Strict'],
    ])

    const sites = await countSites()
    await page.goto(otherOrigin.url)
    for (const [path, method] of [
      ['/api/v1/auth/session', 'POST'],
      ['/api/v1/auth/session/refresh', 'POST'],
      ['/api/v1/auth/logout', 'POST'],
      ['/api/v1/sites', 'POST'],
      ['/api/v1/sites', 'GET'],
    ] as const) {
      const responded = page.waitForResponse((response) => response.url() === platform.url + path)
      // A browser sends text/plain without a preflight request.
      await page.evaluate(
        ([address, verb, body]) => {
          const content = verb === 'GET' ? {} : { headers: { 'content-type': 'text/plain' }, body }
          const init: RequestInit = { method: verb, mode: 'no-cors', credentials: 'include', ...content }
          return fetch(address, init).then(() => undefined)
        },
        [platform.url + path, method, JSON.stringify({ ...credentials, name: 'from elsewhere' })] as const,
      )
      // 403 rather than 401: the browser sent the cookies, and the platform rejected the origin.
      expect([path, (await responded).status()]).toEqual([path, 403])
    }

    const response = page.waitForResponse((response) => response.request().method() === 'POST')
    const form = `Object.assign(document.createElement('form'), { method: 'POST', action: '${platform.url}/api/v1/auth/logout' })`
    await page.evaluate(`document.body.appendChild(${form}).submit()`)
    expect(await (await response).json()).toMatchObject({ error: 'cross_origin_request' })
    expect(await countSites()).toBe(sites)
    expect(await context.cookies()).toEqual(cookies)

    await page.goto(ownPage)
    expect(await call('/api/v1/auth/session/refresh', 'POST')).toEqual([200, { expiresIn: 900 }])
    expect(await call('/api/v1/auth/session', 'DELETE')).toEqual([204, null])
    expect((await context.cookies()).map(({ name }) => name)).toEqual(['plat_device'])
    expect((await call('/api/v1/auth/me'))[0]).toBe(401)
  },
)
