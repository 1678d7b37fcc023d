import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startModuleHost } from '@platform/local/modules/host'
import { serveHost } from '@platform/local/modules/host-server'
import { hostedRuntime } from '@platform/worker/runtimes/hosted'
import { type ModuleRuntime } from '@platform/worker/runtimes/port'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { waitFor } from '../../support/wait-for.ts'
import { evaluateInModule, deploymentSpecOf, limits, localRuntime, processesWith } from '../../support/local-runtime.ts'
import { pushFixture, pushProgram } from '../../support/module-image.ts'
import { type ModuleRegistry, startModuleRegistry } from '../../support/module-registry.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const get = { method: 'GET', path: '/' }

let registry: ModuleRegistry
beforeAll(async () => {
  registry = await startModuleRegistry()
})
afterAll(() => registry[Symbol.asyncDispose]())

interface Wish {
  dataDir?: string
  environment?: Record<string, string>
  threadUrl?: URL
}

/** A module host, and its runtime as functions have it. */
async function startHost({ dataDir, environment = registry.settings, threadUrl }: Wish = {}) {
  const folder = await temporaryFolder()
  const logged: { message: string; details: object }[] = []
  const data = dataDir ?? folder.path
  const host = await startModuleHost(
    {
      dataDir: data,
      mode: 'process',
      environment,
      log: (message, details = {}) => logged.push({ message, details }),
    },
    threadUrl,
  )
  const runtime: ModuleRuntime = hostedRuntime({ ...host, tokenOf: async (id) => `token of ${id}` })
  return {
    ...host,
    runtime,
    logged,
    dataDir: data,
    async [Symbol.asyncDispose]() {
      await host.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

test('functions deploy, ask, list and remove modules through the host', async () => {
  await using host = await startHost()
  const { runtime } = host
  const assignment = deploymentSpecOf(await pushFixture(registry.client, 'puppet'))
  const [deployment, same] = await Promise.all([runtime.deploy(assignment), runtime.deploy(assignment)])
  expect(same).toEqual(deployment)
  expect(deployment).toMatchObject({ id: assignment.id, runtime: 'process', isolation: host.isolation })
  expect(await evaluateInModule(runtime, deployment, 'process.env.PLATFORM_MODULE_TOKEN')).toBe(
    `token of ${assignment.id}`,
  )
  expect(await runtime.list()).toEqual([{ deployment, state: 'running', crashes: 0 }])
  await Promise.all([runtime.remove(deployment, 1000), runtime.remove(deployment, 1000)])
  await runtime.remove(deployment, 1000)
  expect(await runtime.list()).toEqual([])
  await expect(runtime.request(deployment, get, limits)).rejects.toMatchObject({ problem: 'unavailable' })
})

test('the token of a deployment is forgotten when it is removed', async () => {
  await using local = await localRuntime('process')
  const tokens = new Map<string, string>()
  const token = 'token of the host'
  const server = await serveHost({ runtime: local, tokens, token, port: 0, onError: () => undefined })
  const runtime = hostedRuntime({ url: server.url, token, tokenOf: async (id) => `token of ${id}` })
  const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(local.registry, 'puppet')))
  expect([...tokens]).toEqual([[deployment.id, `token of ${deployment.id}`]])
  await runtime.remove(deployment, 1000)
  expect([...tokens]).toEqual([])
  await server.close()
})

test('what the runtime refuses arrives as it was said', async () => {
  await using host = await startHost()
  const program = await pushProgram(registry.client, 'python', '', { config: { Cmd: ['python3'] } })
  await expect(host.runtime.deploy(deploymentSpecOf(program))).rejects.toMatchObject({
    name: 'RuntimeError',
    problem: 'refused',
    message: expect.stringContaining('python3'),
  })
  const ending = await pushFixture(registry.client, 'ends-at-once')
  await expect(host.runtime.deploy(deploymentSpecOf(ending))).rejects.toMatchObject({ problem: 'init_failed' })
})

test('only who has the host’s token may ask, and only what it knows', async () => {
  await using host = await startHost()
  const authorization = `Bearer ${host.token}`
  const call = async (path: string, init: RequestInit = {}) => (await fetch(`${host.url}${path}`, init)).status
  const post = (path: string, body: string) => call(path, { method: 'POST', headers: { authorization }, body })
  expect(await call('/list')).toBe(401)
  expect(await call('/list', { headers: { authorization: `${authorization}x` } })).toBe(401)
  expect(await call('/deploy', { method: 'POST', body: '{' })).toBe(401)
  expect(await call('/list', { headers: { authorization } })).toBe(200)
  expect(await call('/other', { headers: { authorization } })).toBe(404)
  expect(await call('/deploy', { headers: { authorization } })).toBe(404)
  expect(await post('/deploy', '{')).toBe(400)
  expect(await post('/deploy', '{}')).toBe(400)
  const assignment = deploymentSpecOf({ repository: 'r.test/x', digest: 'sha256:../../..' })
  expect(await post('/deploy', JSON.stringify({ assignment, token: 't' }))).toBe(400)
  expect(await post('/remove', '{"deployment":{}}')).toBe(400)
  expect(host.logged).toEqual([])
})

test('a host that is not there is unavailable, and not a fault of the module', async () => {
  const host = await startHost()
  await host[Symbol.asyncDispose]()
  await expect(host.runtime.list()).rejects.toMatchObject({
    problem: 'unavailable',
    message: expect.stringContaining('The module host does not answer'),
  })
})

test('modules end with the host, and start again from the disk although their registry is gone', async () => {
  await using folder = await temporaryFolder()
  const marker = `marker-host-${process.pid}`
  const assignment = deploymentSpecOf(await pushFixture(registry.client, 'puppet', [marker]))
  const first = await startHost({ dataDir: folder.path })
  const deployment = await first.runtime.deploy(assignment)
  await first.close()
  expect(await processesWith(marker)).toEqual([])
  // It may reach no registry now.
  await using second = await startHost({ dataDir: folder.path, environment: {} })
  expect(await second.runtime.list()).toEqual([])
  expect(await second.runtime.deploy(assignment)).toEqual(deployment)
  const other = deploymentSpecOf(await pushFixture(registry.client, 'calm'))
  await expect(second.runtime.deploy(other)).rejects.toMatchObject({ problem: 'unavailable' })
})

test('what ran before the host started leaves no image when it is removed', async () => {
  await using folder = await temporaryFolder()
  const first = await startHost({ dataDir: folder.path })
  const deployment = await first.runtime.deploy(deploymentSpecOf(await pushFixture(registry.client, 'puppet')))
  await first.close()
  const images = join(folder.path, 'modules', 'images')
  expect(await readdir(images)).toHaveLength(1)
  await using second = await startHost({ dataDir: folder.path })
  await second.runtime.remove(deployment, 0)
  expect(await readdir(images)).toEqual([])
})

test('what modules print is on the platform’s output, as JSON that names them', async () => {
  await using host = await startHost()
  const written: string[] = []
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0)
  try {
    await host.runtime.deploy(deploymentSpecOf(await pushFixture(registry.client, 'calm')))
    const lines = await waitFor('both lines are written', async () => {
      const all = written.join('').split('\n').filter(Boolean)
      return all.some((line) => line.includes('Started')) && all
    })
    const found = lines.map((line) => JSON.parse(line))
    expect(found).toContainEqual(expect.objectContaining({ module_id: 'calm', level: 'info', message: 'configure' }))
    expect(found).toContainEqual(expect.objectContaining({ module_id: 'calm', message: 'The module is Started' }))
  } finally {
    write.mockRestore()
  }
})

test('a host whose thread dies is replaced at its address, and its modules have ended', async () => {
  await using host = await startHost({ threadUrl: new URL('dying-thread.ts', import.meta.url) })
  const marker = `marker-thread-${process.pid}`
  const assignment = deploymentSpecOf(await pushFixture(registry.client, 'puppet', [marker]))
  const deployment = await host.runtime.deploy(assignment)
  const before = await processesWith(marker)
  await writeFile(join(host.dataDir, 'die'), '')
  await waitFor('it is replaced', () =>
    host.runtime.list().then(
      (all) => all.length === 0,
      () => false,
    ),
  )
  expect(await host.runtime.deploy(assignment)).toEqual(deployment)
  const after = await processesWith(marker)
  expect(before.filter((id) => after.includes(id))).toEqual([])
  expect(await evaluateInModule(host.runtime, deployment, '1 + 1')).toBe(2)
  expect(host.logged).toMatchObject([{ message: 'the module host ended and is replaced' }])
})

test('a host that cannot do what it is told does not start', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'file')
  await writeFile(file, '')
  await expect(startHost({ dataDir: file })).rejects.toThrow(/ENOTDIR|EEXIST/)
})
