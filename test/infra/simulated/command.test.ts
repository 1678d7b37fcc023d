import { spawn } from 'node:child_process'
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseOptions } from '../../simulator/command/options.ts'
import { isLong } from '../../support/long.ts'
import { SimulatorCommand } from '../../support/simulator-command.ts'
import { waitFor } from '../../support/wait-for.ts'

test.each([
  [[], { action: 'start', stage: 'dev', port: 0 }],
  [['--stage', 'production', '--port', '8090'], { action: 'start', stage: 'production', port: 8090 }],
  [['--help', '--stop'], { action: 'help' }],
])('parses %j', (args, options) => {
  expect(parseOptions(args)).toEqual(options)
})

test.each([
  [['--stage', 'a b'], '--stage: "a b" must be'],
  [['--port', '70000'], '--port: "70000" is not a port'],
  [['--stop', '--stage', 'dev'], '--stage only applies to a start'],
  [['--stages', 'dev'], "Unknown option '--stages'"],
])('rejects %j with a reason', (args, reason) => {
  expect(() => parseOptions(args)).toThrow(
    expect.objectContaining({ exitCode: 2, message: expect.stringContaining(reason) }),
  )
})

let command: SimulatorCommand
beforeAll(async () => {
  command = await SimulatorCommand.create()
})
afterAll(() => command[Symbol.asyncDispose]())

const urlOf = (text: string): string => /API: +(\S+)/.exec(text)?.[1] ?? ''
const isReady = async (url: string): Promise<boolean> =>
  fetch(`${url}/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  )

async function expectOnlyLog(): Promise<void> {
  await waitFor('the processes to end', async () => (await command.processes()).length === 0)
  const names = await readdir(command.folder)
  expect(names.filter((name) => !name.startsWith('lock.sqlite'))).toEqual(['simulator.log'])
}

test('never kills a process that reuses the id of an old state', async () => {
  using sleeper = spawn('sleep', ['600'])
  await mkdir(command.folder, { recursive: true, mode: 0o700 })
  const state = { pid: sleeper.pid, stamp: 'another process', stage: 'dev' }
  await writeFile(join(command.folder, 'state.json'), JSON.stringify(state))
  const stopResult = await command.run(['--stop'])
  expect(stopResult).toMatchObject({ exitCode: 0, text: expect.stringContaining('killed simulator') })
  expect([sleeper.exitCode, sleeper.signalCode]).toEqual([null, null])
})

/** A start is slow because it deploys the platform, so each test continues from the state of the previous one. */
describe.runIf(isLong)('the simulator', () => {
  let url = ''

  test('keeps running after its command and prints its token', async () => {
    const { exitCode, text } = await command.start()
    expect(exitCode, text).toBe(0)
    expect(text).toMatch(
      /Evaluated .*stage dev has \d+ resources.*\n.*Deployed \d+ functions.*\n.*gateway.*\n.*started/,
    )
    url = urlOf(text)
    expect(await isReady(url)).toBe(true)
    expect(command.state).toMatchObject({ stage: 'dev', ready: { url } })
    const modes = [command.folder, join(command.folder, 'state.json')].map(
      async (path) => (await stat(path)).mode & 0o777,
    )
    expect(await Promise.all(modes)).toEqual([0o700, 0o600])
    expect(await command.run(['--token'])).toMatchObject({ exitCode: 0, text: expect.stringMatching(/^admin\.\S+\n$/) })
  })

  test('is replaced by another start, also of another stage', async () => {
    const { pid } = command.state ?? {}
    const second = await command.start('--stage', 'production')
    expect(second.text).toContain(`Stopping the simulator of dev with process id ${pid}`)
    expect([second.exitCode, await isReady(url), await isReady(urlOf(second.text))]).toEqual([0, false, true])
    expect(command.state).toMatchObject({ stage: 'production' })
  })

  test('removes the frozen processes of a killed simulator at the next start', async () => {
    const processesBefore = await command.processes()
    expect(processesBefore.length).toBeGreaterThan(1)
    process.kill(command.state?.pid ?? 0, 'SIGKILL')
    const next = await command.start()
    expect(next).toMatchObject({
      exitCode: 0,
      text: expect.stringContaining('Removed the files and processes of the killed simulator of'),
    })
    expect((await command.processes()).filter((pid) => processesBefore.includes(pid))).toEqual([])
  })

  test('leaves only its log after a stop', async () => {
    expect(await command.run(['--stop'])).toMatchObject({ exitCode: 0, text: expect.stringContaining('Stopped') })
    await expectOnlyLog()
    expect(await command.run(['--stop'])).toMatchObject({ exitCode: 0, text: 'No simulator is running.\n' })
    expect(await command.run(['--token'])).toMatchObject({ exitCode: 1, text: expect.stringContaining('No simulator') })
  })

  test('reports why the platform does not start', async () => {
    const brokenFolder = join(command.folder, '..', 'broken')
    for (const name of await readdir(command.functions, { recursive: true })) {
      if (!name.endsWith('index.mjs')) continue
      await mkdir(join(brokenFolder, name, '..'), { recursive: true })
      await writeFile(join(brokenFolder, name), `export const handler = () => { throw new Error('no store today') }`)
    }
    const failedStart = await command.run(['--functions', brokenFolder])
    expect(failedStart).toMatchObject({
      exitCode: 1,
      text: expect.stringMatching(/bootstrap failed: .*no store today/),
    })
    await expectOnlyLog()
  })

  test('reports invalid settings', async () => {
    const failedStart = await command.run(['--functions', command.functions], { PLAT_LIMIT_API_BURST: 'many' })
    expect(failedStart).toMatchObject({ exitCode: 1, text: expect.stringContaining('PLAT_LIMIT_API_BURST') })
    await expectOnlyLog()
  })

  test('ends when its start is interrupted', async () => {
    const program = command.begin(['--functions', command.functions])
    await program.writes(/Evaluated/)
    program.interrupt()
    await program.ended
    await expectOnlyLog()
  })
})
