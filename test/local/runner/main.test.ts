import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { listenAt } from '@platform/local/listening'
import { expect, test } from 'vitest'
import { isLong } from '../../support/long.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { type Barrier, startBarrier } from '../support/barrier.ts'
import { writeFunctions } from '../support/platform.ts'
import { runProgram, runServer } from '../support/program.ts'

const main = 'packages/local/src/main.ts'
const adminToken = 'packages/local/src/commands/admin-token.ts'

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

test('setup can be completed with the commands that the platform prints at start', async () => {
  await using folder = await temporaryFolder()
  const environment = inFolder(folder.path)
  await using early = runProgram(adminToken, { environment })
  expect(await early.exit).toBe(1)
  expect(early.lines).toEqual([`No platform runs on the data in ${folder.path}/data. Start it with: npm start`])

  await using platform = runProgram(main, { environment })
  const url = await platform.waitForLine('Platform ready at ')
  expect(platform.lines[0]).toBe(`Starting the platform. Its data is in ${environment.PLAT_DATA_DIR}`)
  await platform.waitForLine('Setup is not complete.')
  await platform.waitForLine('  npm run -s admin-token')
  await platform.waitForLine(`  curl ${url}/api/v1/setup/complete`)
  // By default, Node opens its inspector on this signal.
  platform.child.kill('SIGUSR1')
  expect((await fetch(`${url}/health/ready`)).status).toBe(200)

  await using program = runProgram(adminToken, { environment })
  expect(await program.exit).toBe(0)
  expect(program.lines).toEqual([expect.stringMatching(/^\S{20,}$/)])
  expect((await postJson(`${url}/api/v1/setup/complete`, setup(program.lines[0] ?? ''))).status).toBe(200)

  await using late = runProgram(adminToken, { environment })
  expect(await late.exit).toBe(1)
  expect(late.lines).toEqual(['Setup is complete: there is no initial admin token.'])

  platform.child.kill('SIGTERM')
  expect(await platform.exit).toBe(0)
  expect(platform.lines.filter((line) => line.includes('Debugger'))).toEqual([])
})

test('the runner and its commands report every invalid setting', async () => {
  const lines = ['  PLAT_PORT: must be a whole number', '  PLAT_SWEEP_INTERVAL_SECONDS: must be from 1 to 3600']
  const ofRunner = { PLAT_PORT: 'many', PLAT_SWEEP_INTERVAL_SECONDS: '0' }
  const ofFunctions = { PLAT_LOG_LEVEL: 'loud', PLAT_DATA_DIR: '/nowhere' }
  const ofLogLevel = [expect.stringMatching(/^ {2}PLAT_LOG_LEVEL: ./)]
  for (const [path, environment, exitCode, expected] of [
    [main, ofRunner, 2, lines],
    [main, ofFunctions, 2, ofLogLevel],
    [adminToken, ofFunctions, 1, ofLogLevel],
  ] as const) {
    await using program = runProgram(path, { environment })
    expect(await program.exit).toBe(exitCode)
    expect(program.lines).toEqual(['These settings in the environment are not valid:', ...expected])
  }
})

test('reports a port in use in one line with exit code 1', async () => {
  await using folder = await temporaryFolder()
  const other = createServer()
  const { port } = await listenAt(other, '127.0.0.1', 0)
  await using program = runProgram(main, { environment: inFolder(folder.path, { PLAT_PORT: String(port) }) })
  expect(await program.exit).toBe(1)
  expect(program.lines.slice(1)).toEqual([expect.stringContaining(`127.0.0.1:${port} is in use.`)])
  other.close()
  await once(other, 'close')
})

async function startBusy(folder: string, barrier: Barrier) {
  const slow = `export const handler = async () => { ${barrier.report('request')}; return { statusCode: 200, body: 'done' } }`
  const functionsDir = await writeFunctions(folder, { sites: slow })
  const platform = await runServer('platform', join(folder, 'data'), functionsDir)
  const response = fetch(`${platform.address.url}/api/v1/sites`)
  await barrier.reports('request')
  return { ...platform, response }
}

test.for(isLong ? (['SIGTERM', 'SIGINT'] as const) : (['SIGTERM'] as const))(
  '%s completes running requests, and the exit code is 0',
  async (signal) => {
    await using folder = await temporaryFolder()
    await using barrier = await startBarrier()
    await using platform = await startBusy(folder.path, barrier)
    platform.child.kill(signal)
    // npm repeats the signal that a terminal sends to the process group.
    platform.child.kill(signal)
    await platform.waitForLine(`${signal}: stopping.`)
    barrier.open()
    expect(await (await platform.response).text()).toBe('done')
    expect(await platform.exit).toBe(0)
  },
)

test('a second signal during the shutdown stops the platform at once', async () => {
  await using folder = await temporaryFolder()
  await using barrier = await startBarrier()
  await using platform = await startBusy(folder.path, barrier)
  const failed = expect(platform.response).rejects.toThrow('fetch failed')
  platform.child.kill('SIGTERM')
  await platform.waitForLine('SIGTERM: stopping.')
  const repeated = setInterval(() => platform.child.kill('SIGTERM'), 100)
  expect(await platform.exit).toBe(1)
  clearInterval(repeated)
  await failed
})
