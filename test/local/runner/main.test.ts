import { once } from 'node:events'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join, resolve } from 'node:path'
import { listenAt } from '@platform/local/listening'
import { readRuntimeFile } from '@platform/local/runtime-file'
import { expect, test } from 'vitest'
import { isLong } from '../../support/long.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { waitFor } from '../../support/wait-for.ts'
import { type Barrier, startBarrier } from '../support/barrier.ts'
import { writeFunctions } from '../support/platform.ts'
import { runProgram, runServer } from '../support/program.ts'

const mainFile = 'packages/local/src/main.ts'
const adminToken = 'packages/local/src/commands/admin-token.ts'

const inFolder = (path: string, environment: Record<string, string> = {}) => ({
  PLAT_DATA_DIR: join(path, 'data'),
  PLAT_PORT: '0',
  ...environment,
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
  await using earlyProgram = runProgram(adminToken, { environment })
  expect(await earlyProgram.exit).toBe(1)
  expect(earlyProgram.lines).toEqual([
    expect.stringMatching(/^No platform runs on the data in .*\/data\. Start it .* set PLAT_DATA_DIR/),
  ])

  await using platform = runProgram(mainFile, { environment, isOnTerminal: true })
  const url = await platform.waitForLine('Platform ready at ')
  const logFile = join(environment.PLAT_DATA_DIR, 'logs/platform.log')
  const { processId } = await readRuntimeFile(environment.PLAT_DATA_DIR)
  // By default, Node opens its inspector on this signal.
  process.kill(processId, 'SIGUSR1')
  expect((await fetch(`${url}/health/ready`)).status).toBe(200)
  expect(platform.lines).toEqual([
    `Starting the platform. Its data is in ${environment.PLAT_DATA_DIR}`,
    `Its log is in ${logFile} (PLAT_LOG=stdout prints it here).`,
    expect.stringContaining('store, queues and secrets'),
    expect.stringContaining('portal and functions'),
    expect.stringContaining(`: PLAT_DATA_DIR=${environment.PLAT_DATA_DIR} npm run -s admin-token`),
    `Platform ready at ${url}`,
  ])
  await waitFor('the request is in the log', async () => (await readFile(logFile, 'utf8')).includes('/health/ready'))

  await using program = runProgram(adminToken, { environment })
  expect(await program.exit).toBe(0)
  expect(program.lines).toEqual([expect.stringMatching(/^\S{20,}$/)])
  expect((await postJson(`${url}/api/v1/setup/complete`, setup(program.lines[0] ?? ''))).status).toBe(200)

  await using lateProgram = runProgram(adminToken, { environment })
  expect(await lateProgram.exit).toBe(1)
  expect(lateProgram.lines).toEqual(['Setup is complete: there is no initial admin token.'])

  process.kill(processId, 'SIGTERM')
  expect(await platform.exit).toBe(0)
  expect(platform.lines.slice(6)).toEqual([expect.stringContaining('SIGTERM: stopping.')])
})

test('on a terminal, log lines go to a bounded file, and only messages of errors are shown', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'logs/platform.log')
  const script = join(folder.path, 'log.ts')
  await writeFile(
    script,
    `import { logToFile } from ${JSON.stringify(resolve('packages/local/src/log-file.ts'))}
    logToFile(${JSON.stringify(file)}, 2000)
    for (let number = 0; number < 100; number++) {
      console.log(JSON.stringify({ level: 'info', message: 'request ' + number }))
      console.error(JSON.stringify({ level: 'error', module_id: 'm', message: '\\x1b[2J' + number }))
    }
    console.error('a crash')`,
  )
  await using program = runProgram(script, {})
  expect(await program.exit).toBe(0)
  expect(program.lines.slice(0, 2)).toEqual([0, 1].map((n) => `Error: m: \\u001b[2J${n} (details in ${file})`))
  expect(program.lines.slice(5)).toEqual([`More errors are in ${file}`, 'a crash'])
  expect((await readdir(join(folder.path, 'logs'))).toSorted()).toEqual(['platform.log', 'platform.log.1'])
  expect((await readFile(file, 'utf8')).trimEnd()).toMatch(/2J99"}$/)
  expect((await stat(file)).size).toBeLessThan(2200)
})

test('the runner and its commands report every invalid setting', async () => {
  const lines = ['  PLAT_PORT: must be a whole number', '  PLAT_SWEEP_INTERVAL_SECONDS: must be from 1 to 3600']
  const runnerSettings = { PLAT_PORT: 'many', PLAT_SWEEP_INTERVAL_SECONDS: '0' }
  const functionSettings = { PLAT_LOG_LEVEL: 'loud', PLAT_DATA_DIR: '/nowhere' }
  const logLevelErrors = [expect.stringMatching(/^ {2}PLAT_LOG_LEVEL: ./)]
  for (const [path, environment, exitCode, expected] of [
    [mainFile, runnerSettings, 2, lines],
    [mainFile, functionSettings, 2, logLevelErrors],
    [adminToken, functionSettings, 1, logLevelErrors],
  ] as const) {
    await using program = runProgram(path, { environment })
    expect(await program.exit).toBe(exitCode)
    expect(program.lines).toEqual(['These settings in the environment are not valid:', ...expected])
  }
})

test('reports a port in use in one line with exit code 1', async () => {
  await using folder = await temporaryFolder()
  const otherServer = createServer()
  const { port } = await listenAt(otherServer, '127.0.0.1', 0)
  await using program = runProgram(mainFile, { environment: inFolder(folder.path, { PLAT_PORT: String(port) }) })
  expect(await program.exit).toBe(1)
  expect(program.lines.slice(1)).toEqual([expect.stringContaining(`127.0.0.1:${port} is in use.`)])
  otherServer.close()
  await once(otherServer, 'close')
})

async function startBusy(folder: string, barrier: Barrier) {
  const slowSource = `export const handler = async () => { ${barrier.report('request')}; return { statusCode: 200, body: 'done' } }`
  const functionsDir = await writeFunctions(folder, { sites: slowSource })
  const platform = await runServer('platform', join(folder, 'data'), functionsDir)
  const response = fetch(`${platform.address.url}/api/v1/sites`)
  await barrier.waitForReports('request')
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
  const repeatedSignal = setInterval(() => platform.child.kill('SIGTERM'), 100)
  expect(await platform.exit).toBe(1)
  clearInterval(repeatedSignal)
  await failed
})
