import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listenAt } from '@platform/local/listening'
import { expect, test } from 'vitest'
import { isLong } from '../../support/long.ts'
import { startGate } from './gate.ts'
import { runProgram } from './program.ts'
import { temporaryFolder, writeFunctions } from './support.ts'

const main = 'packages/local/src/main.ts'
const adminToken = 'packages/local/src/commands/admin-token.ts'
const serve = fileURLToPath(new URL('serve.ts', import.meta.url))
const ready = 'Platform ready at '

const inFolder = (path: string, more: Record<string, string> = {}) => ({
  PLAT_DATA_DIR: join(path, 'data'),
  PLAT_PORT: '0',
  ...more,
})

const setup = (initialAdminToken: string) => ({
  platformName: 'Test',
  publicUrl: 'https://platform.example.com',
  timezone: 'UTC',
  adminUsername: 'admin',
  adminEmail: 'admin@example.com',
  adminPassword: 'correct horse battery',
  initialAdminToken,
})

const postJson = (url: string, body: unknown) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

test('from start to setup: the platform says where it is, and its admin token completes setup', async () => {
  await using folder = await temporaryFolder()
  const environment = inFolder(folder.path)
  await using platform = runProgram(main, { environment })
  const url = await platform.says(ready)
  expect(platform.lines[0]).toBe(`Starting the platform. Its data are in ${environment.PLAT_DATA_DIR}`)
  await platform.says('Setup is not complete.')
  await platform.says('  npm run -s admin-token')
  await platform.says(`  curl ${url}/api/v1/setup/complete`)
  expect((await fetch(`${url}/health/ready`)).status).toBe(200)

  await using program = runProgram(adminToken, { environment })
  expect(await program.ended).toBe(0)
  expect(program.lines).toEqual([expect.stringMatching(/^\S{20,}$/)])
  expect((await postJson(`${url}/api/v1/setup/complete`, setup(program.lines[0] ?? ''))).status).toBe(200)

  await using late = runProgram(adminToken, { environment })
  expect(await late.ended).toBe(1)
  expect(late.lines).toEqual(['Setup is complete: there is no initial admin token.'])

  platform.child.kill('SIGTERM')
  expect(await platform.ended).toBe(0)
})

// The journeys kill platforms as well.
test.runIf(isLong)('a killed platform loses nothing that it answered, and the next start finds it', async () => {
  await using folder = await temporaryFolder()
  const environment = inFolder(folder.path)
  await using first = runProgram(main, { environment })
  const url = await first.says(ready)
  await using program = runProgram(adminToken, { environment })
  await program.ended
  expect((await postJson(`${url}/api/v1/setup/complete`, setup(program.lines[0] ?? ''))).status).toBe(200)
  first.child.kill('SIGKILL')
  await first.ended

  await using afterKill = runProgram(adminToken, { environment })
  expect(await afterKill.ended).toBe(1)
  expect(afterKill.lines).toEqual([expect.stringMatching(/^No platform runs on the data in .* npm start$/)])

  await using second = runProgram(main, { environment })
  const again = await second.says(ready)
  expect((await fetch(`${again}/api/v1/setup/status`)).status).toBe(403)
  const credentials = { username: 'admin', password: 'correct horse battery' }
  expect((await postJson(`${again}/api/v1/auth/login`, credentials)).status).toBe(200)
  expect(second.lines.some((line) => line.startsWith('Setup is not complete'))).toBe(false)
})

test('every bad setting is named, and the exit code is 2', async () => {
  const environment = { PLAT_PORT: 'many', PLAT_SWEEP_INTERVAL_SECONDS: '0', PLAT_OUTBOX_RETRY_SECONDS: '0' }
  await using program = runProgram(main, { environment })
  expect(await program.ended).toBe(2)
  expect(program.lines).toEqual([
    'These settings in the environment are not valid:',
    '  PLAT_PORT: must be a whole number',
    '  PLAT_SWEEP_INTERVAL_SECONDS: must be from 1 to 3600',
    '  PLAT_OUTBOX_RETRY_SECONDS: must be from 1 to 3600',
  ])
})

test('a setting that is read as functions are loaded is named likewise, and by commands', async () => {
  const environment = { PLAT_LOG_LEVEL: 'loud', PLAT_DATA_DIR: '/nowhere' }
  for (const [path, exitCode] of [
    [main, 2],
    [adminToken, 1],
    ['packages/local/src/backup/restore.ts', 1],
  ] as const) {
    await using program = runProgram(path, { environment })
    expect(await program.ended).toBe(exitCode)
    expect(program.lines).toEqual([
      'These settings in the environment are not valid:',
      expect.stringMatching(/^ {2}PLAT_LOG_LEVEL: ./),
    ])
  }
})

test('a port in use is said in one line, and the exit code is 1', async () => {
  await using folder = await temporaryFolder()
  const squatter = createServer()
  const { port } = await listenAt(squatter, '127.0.0.1', 0)
  await using program = runProgram(main, { environment: inFolder(folder.path, { PLAT_PORT: String(port) }) })
  expect(await program.ended).toBe(1)
  expect(program.lines.slice(1)).toEqual([expect.stringContaining(`127.0.0.1:${port} is in use.`)])
  squatter.close()
  await once(squatter, 'close')
})

test('a port of the registry that is in use is said with the setting that moves it', async () => {
  await using folder = await temporaryFolder()
  const squatter = createServer()
  const { port } = await listenAt(squatter, '127.0.0.1', 0)
  await using program = runProgram(main, { environment: inFolder(folder.path, { PLAT_REGISTRY_PORT: String(port) }) })
  expect(await program.ended).toBe(1)
  const advice = `127.0.0.1:${port} is in use. Stop what listens there, or set PLAT_REGISTRY_PORT to another port`
  expect(program.lines.slice(1)).toEqual([expect.stringContaining(advice)])
  squatter.close()
  await once(squatter, 'close')
})

test('without a platform the admin token’s place is told', async () => {
  await using folder = await temporaryFolder()
  await using program = runProgram(adminToken, { environment: inFolder(folder.path) })
  expect(await program.ended).toBe(1)
  expect(program.lines).toEqual([`No platform runs on the data in ${folder.path}/data. Start it with: npm start`])
})

test.for(isLong ? (['SIGTERM', 'SIGINT'] as const) : (['SIGTERM'] as const))(
  '%s lets the request under way end, and the exit code is 0',
  async (signal) => {
    await using folder = await temporaryFolder()
    await using gate = await startGate()
    const slow = `export const handler = async () => {
    ${gate.pass('request')}
    return { statusCode: 200, body: 'the answer' }
  }`
    const functionsDir = await writeFunctions(folder.path, { sites: slow })
    await using platform = runProgram(serve, { arguments: [join(folder.path, 'data'), functionsDir] })
    const url = await platform.says(ready)
    const response = fetch(`${url}/api/v1/sites`)
    await gate.arrived('request')
    platform.child.kill(signal)
    // npm repeats what the terminal has sent to every process of the group.
    platform.child.kill(signal)
    await platform.says(`${signal}: stopping.`)
    gate.open()
    expect(await (await response).text()).toBe('the answer')
    expect(await platform.ended).toBe(0)
  },
)

test('a later second signal stops at once', async () => {
  await using folder = await temporaryFolder()
  await using gate = await startGate()
  const functionsDir = await writeFunctions(folder.path, {
    sites: `export const handler = async () => { ${gate.pass('request')} }`,
  })
  await using platform = runProgram(serve, { arguments: [join(folder.path, 'data'), functionsDir] })
  const url = await platform.says(ready)
  const cutOff = expect(fetch(`${url}/api/v1/sites`)).rejects.toThrow('fetch failed')
  await gate.arrived('request')
  platform.child.kill('SIGTERM')
  await platform.says('SIGTERM: stopping.')
  const insist = setInterval(() => platform.child.kill('SIGTERM'), 100)
  expect(await platform.ended).toBe(1)
  clearInterval(insist)
  await cutOff
})
