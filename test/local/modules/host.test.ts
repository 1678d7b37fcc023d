import { chmod, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startModuleHost } from '@platform/local/modules/host'
import { serveHost } from '@platform/local/modules/host-server'
import { formatModuleLine } from '@platform/local/modules/module-log'
import { runFolderFor } from '@platform/local/modules/run-folder'
import { hostedRuntime } from '@platform/worker/runtimes/hosted'
import type { ModuleRuntime } from '@platform/worker/runtimes/port'
import { checkRunFolder } from '@platform/worker/runtimes/supervised'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { deploymentSpecOf, evaluateInModule, limits, localRuntime, processesWith } from '../../support/local-runtime.ts'
import { pushFixture, pushProgram } from '../../support/module-image.ts'
import { misbehavingId } from '../../support/modules/misbehaving.ts'
import { type ModuleRegistry, startModuleRegistry } from '../../support/module-registry.ts'
import { isLong } from '../../support/long.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { waitFor } from '../../support/wait-for.ts'

const get = { method: 'GET', path: '/' }
let registry: ModuleRegistry

beforeAll(async () => {
  registry = await startModuleRegistry()
})

afterAll(() => registry[Symbol.asyncDispose]())

async function startHost({
  dataDir,
  environment = registry.settings,
  threadUrl,
}: { dataDir?: string; environment?: Record<string, string>; threadUrl?: URL } = {}) {
  const folder = await temporaryFolder()
  const logEntries: { message: string; details: object }[] = []
  const log = (message: string, details = {}) => logEntries.push({ message, details })
  const data = dataDir ?? folder.path
  const host = await startModuleHost({ dataDir: data, mode: 'process', environment, log }, threadUrl)
  const runtime: ModuleRuntime = hostedRuntime({ ...host, tokenOf: async (id) => `token of ${id}` })
  const dispose = async () => {
    await host.close()
    await folder[Symbol.asyncDispose]()
  }
  return { ...host, runtime, logged: logEntries, dataDir: data, [Symbol.asyncDispose]: dispose }
}

test('deploys, calls, lists and removes modules through the host', async () => {
  await using host = await startHost()
  const { runtime } = host
  const spec = deploymentSpecOf(await pushFixture(registry.client, 'puppet'))
  const [deployment, sameDeployment] = await Promise.all([runtime.deploy(spec), runtime.deploy(spec)])
  expect(sameDeployment).toEqual(deployment)
  expect(deployment).toMatchObject({ id: spec.id, runtime: 'process', isolation: host.isolation })
  expect(await evaluateInModule(runtime, deployment, 'process.env.PLATFORM_MODULE_TOKEN')).toBe(`token of ${spec.id}`)
  expect(await runtime.list()).toEqual([{ deployment, state: 'running', crashes: 0 }])
  await Promise.all([runtime.remove(deployment, 1000), runtime.remove(deployment, 1000)])
  await runtime.remove(deployment, 1000)
  expect(await runtime.list()).toEqual([])
  await expect(runtime.request(deployment, get, limits)).rejects.toMatchObject({ problem: 'unavailable' })
})

test('removes the token of a deployment with it', async () => {
  await using processRuntime = await localRuntime('process')
  const tokens = new Map<string, string>()
  const token = 'token of the host'
  const server = await serveHost({ runtime: processRuntime, tokens, token, port: 0, onError: () => undefined })
  const runtime = hostedRuntime({ url: server.url, token, tokenOf: async (id) => `token of ${id}` })
  const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(processRuntime.registry, 'puppet')))
  expect([...tokens]).toEqual([[deployment.id, `token of ${deployment.id}`]])
  await runtime.remove(deployment, 1000)
  expect([...tokens]).toEqual([])
  await server.close()
})

test('returns the errors of the runtime', async () => {
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

test('rejects calls without the token, and invalid calls', async () => {
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
  const spec = deploymentSpecOf({ repository: 'r.test/x', digest: 'sha256:../../..' })
  expect(await post('/deploy', JSON.stringify({ spec, token: 't' }))).toBe(400)
  expect(await post('/remove', '{"deployment":{}}')).toBe(400)
  expect(host.logged).toEqual([])
})

test('a stopped host is unavailable, and an invalid data folder prevents its start', async () => {
  const host = await startHost()
  await host[Symbol.asyncDispose]()
  await expect(host.runtime.list()).rejects.toMatchObject({
    problem: 'unavailable',
    message: expect.stringContaining('The module host does not respond'),
  })
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'file')
  await writeFile(file, '')
  await expect(startHost({ dataDir: file })).rejects.toThrow(/ENOTDIR|EEXIST/)
})

test('modules end with the host, and start again from stored images', async () => {
  await using folder = await temporaryFolder()
  const marker = `marker-host-${process.pid}`
  const spec = deploymentSpecOf(await pushFixture(registry.client, 'puppet', [marker]))
  const firstHost = await startHost({ dataDir: folder.path })
  const deployment = await firstHost.runtime.deploy(spec)
  await firstHost.close()
  expect(await processesWith(marker)).toEqual([])
  // Without settings the host cannot reach the registry.
  await using secondHost = await startHost({ dataDir: folder.path, environment: {} })
  expect(await secondHost.runtime.list()).toEqual([])
  expect(await secondHost.runtime.deploy(spec)).toEqual(deployment)
  const otherSpec = deploymentSpecOf(await pushFixture(registry.client, 'calm'))
  await expect(secondHost.runtime.deploy(otherSpec)).rejects.toMatchObject({ problem: 'unavailable' })
  await secondHost.runtime.remove(deployment, 0)
  expect(await readdir(join(folder.path, 'modules', 'images'))).toEqual([])
})

test.skipIf(!isLong)(
  'a module whose stop hook hangs is disposed of before the host ends',
  { timeout: 60_000 },
  async () => {
    await using host = await startHost()
    const image = await pushFixture(registry.client, 'hooks', ['hangs', 'stop'])
    // Without the id in the code, the module does not start, and its stop hook does not run.
    await host.runtime.deploy(deploymentSpecOf(image, { moduleId: misbehavingId('hangs', 'stop') }))
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
    onTestFinished(() => write.mockRestore())
    await host.close()
    expect(write.mock.calls.map(([line]) => JSON.parse(String(line)).message)).toEqual(
      expect.arrayContaining(['stop', 'stop failed', 'dispose', 'The module is Disposed']),
    )
  },
)

test('logs the output of modules as JSON with the module id', async () => {
  await using host = await startHost()
  const writtenLines: string[] = []
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => writtenLines.push(String(text)) > 0)
  try {
    await host.runtime.deploy(deploymentSpecOf(await pushFixture(registry.client, 'calm')))
    await waitFor('both lines', async () => writtenLines.join('').includes('Started'))
  } finally {
    write.mockRestore()
  }
  const lines = writtenLines
    .join('')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  expect(lines).toContainEqual(expect.objectContaining({ module_id: 'calm', level: 'info', message: 'configure' }))
  expect(lines).toContainEqual(expect.objectContaining({ module_id: 'calm', message: 'The module is Started' }))
})

test('replaces a host whose thread dies at the same address, without its modules', async () => {
  await using host = await startHost({ threadUrl: new URL('dying-thread.ts', import.meta.url) })
  const marker = `marker-thread-${process.pid}`
  const spec = deploymentSpecOf(await pushFixture(registry.client, 'puppet', [marker]))
  const deployment = await host.runtime.deploy(spec)
  const processesBefore = await processesWith(marker)
  await writeFile(join(host.dataDir, 'die'), '')
  await waitFor('the replacement', () =>
    host.runtime.list().then(
      (all) => all.length === 0,
      () => false,
    ),
  )
  expect(await host.runtime.deploy(spec)).toEqual(deployment)
  const processesAfter = await processesWith(marker)
  expect(processesBefore.filter((id) => processesAfter.includes(id))).toEqual([])
  expect(await evaluateInModule(host.runtime, deployment, '1 + 1')).toBe(2)
  expect(host.logged).toMatchObject([{ message: 'the module host ended and is replaced' }])
})

test('a data folder with a long path uses a fixed temporary folder for sockets, for its owner only', async () => {
  const dataDir = `/${'long/'.repeat(30)}${process.pid}`
  expect(await runFolderFor('/srv/platform')).toBe('/srv/platform/modules/run')
  const folder = await runFolderFor(dataDir)
  onTestFinished(() => rm(join(folder, '..'), { recursive: true }))
  expect(folder.startsWith(tmpdir())).toBe(true)
  expect(() => checkRunFolder(folder)).not.toThrow()
  expect(await runFolderFor(dataDir)).toBe(folder)
  expect((await stat(join(folder, '..'))).mode & 0o777).toBe(0o700)

  await chmod(join(folder, '..'), 0o755)
  await expect(runFolderFor(dataDir)).rejects.toThrow('Set PLAT_DATA_DIR to a folder with a shorter path.')
})

test('a log line of a module keeps its JSON, with the correct module id', () => {
  const line = '{"time":"…", "level":"warn","message":"One","module_id":"hello","n":1.0}'
  expect(formatModuleLine('hello', line)).toBe(line)
  const otherLine = formatModuleLine('hello', '{"message":"One","module_id":"other"}')
  expect(JSON.parse(otherLine)).toEqual({ message: 'One', module_id: 'hello' })
  expect(JSON.parse(formatModuleLine('hello', '{"level":"error"}'))).toEqual({ level: 'error', module_id: 'hello' })
})

test.each(['plain text', '{"broken": ', '[1]', '"text"', 'null', '{}x'])(
  '%s becomes the message of a log line',
  (text) => {
    expect(JSON.parse(formatModuleLine('hello', text))).toEqual({
      time: expect.stringMatching(/^\d{4}-/),
      level: 'info',
      message: text,
      module_id: 'hello',
    })
  },
)

test('escapes control characters of a module', () => {
  const escapes = '\u001b[2J\u009b31m\u2028'
  for (const line of [escapes, JSON.stringify({ message: escapes }), `{"module_id":"hello","x":"\u009b31m"}`]) {
    // oxlint-disable-next-line no-control-regex
    expect(formatModuleLine('hello', line)).toMatch(/^[^\u0000-\u001f\u007f-\u009f\u2028]*$/)
  }
})
