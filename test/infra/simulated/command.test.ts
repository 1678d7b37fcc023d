import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { waitFor } from '../../support/wait-for.ts'
import { isLong } from '../../support/long.ts'
import { SimulatorCommand } from '../../support/simulator-command.ts'

/** Each start is a whole deployment, so tests build on earlier ones. */
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

let command: SimulatorCommand
let url = ''
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

async function nothingIsLeft(): Promise<void> {
  await waitFor('its processes are gone', async () => (await command.processes()).length === 0)
  const names = await readdir(command.folder)
  expect(names.filter((name) => !name.startsWith('lock.sqlite'))).toEqual(['simulator.log'])
}

test.runIf(isLong)('the simulator keeps running after its command and prints its token', async () => {
  const { exitCode, text } = await command.start()
  expect(exitCode, text).toBe(0)
  expect(text).toMatch(/evaluated: stage dev has \d+ resources.*\n.*\d+ functions are deployed.*\n.*gateway.*\n.*begun/)
  url = urlOf(text)
  expect(await isReady(url)).toBe(true)
  expect(command.state).toMatchObject({ stage: 'dev', ready: { url } })
  expect([
    (await stat(command.folder)).mode & 0o777,
    (await stat(join(command.folder, 'state.json'))).mode & 0o777,
  ]).toEqual([0o700, 0o600])
  expect((await command.processes()).length).toBeGreaterThan(1)
  expect(await command.run(['--token'])).toMatchObject({ exitCode: 0, text: expect.stringMatching(/^admin\.\S+\n$/) })
})

test.runIf(isLong)('another start replaces the running simulator, also of another stage', async () => {
  const { pid } = command.state ?? {}
  const second = await command.start('--stage', 'production')
  expect(second.text).toContain(`Stopping the simulator of dev with process id ${pid}`)
  expect([second.exitCode, await isReady(url), await isReady(urlOf(second.text))]).toEqual([0, false, true])
  expect(command.state).toMatchObject({ stage: 'production' })
  expect(await command.processes()).not.toContain(pid)
})

test.runIf(isLong)('a start removes the frozen processes of a killed simulator', async () => {
  const before = await command.processes()
  expect(before.length).toBeGreaterThan(1)
  process.kill(command.state?.pid ?? 0, 'SIGKILL')
  const next = await command.start()
  expect(next).toMatchObject({ exitCode: 0, text: expect.stringContaining('Removed what the killed simulator of') })
  expect((await command.processes()).filter((pid) => before.includes(pid))).toEqual([])
  url = urlOf(next.text)
  expect(await isReady(url)).toBe(true)
})

test.runIf(isLong)('a stopped simulator leaves nothing behind', async () => {
  const stopped = await command.run(['--stop'])
  expect(stopped).toMatchObject({ exitCode: 0, text: expect.stringContaining('is ended') })
  expect(await isReady(url)).toBe(false)
  await nothingIsLeft()
  expect(await command.run(['--stop'])).toMatchObject({ exitCode: 0, text: 'No simulator is running.\n' })
  expect(await command.run(['--token'])).toMatchObject({ exitCode: 1, text: expect.stringContaining('No simulator') })
})

test('never kills a process that reuses the id of an old state', async () => {
  using sleeper = spawn('sleep', ['600'])
  await mkdir(command.folder, { recursive: true })
  const state = { pid: sleeper.pid, stamp: 'of a process that had this id before', stage: 'dev' }
  await writeFile(join(command.folder, 'state.json'), JSON.stringify(state))
  expect(await command.run(['--stop'])).toMatchObject({
    exitCode: 0,
    text: expect.stringContaining('killed simulator'),
  })
  expect([sleeper.exitCode, sleeper.signalCode]).toEqual([null, null])
})

test.runIf(isLong)('a failing platform fails the command with its reason and leaves nothing behind', async () => {
  const broken = join(command.folder, '..', 'broken')
  for (const name of await readdir(command.functions, { recursive: true })) {
    if (!name.endsWith('index.mjs')) continue
    await mkdir(join(broken, name, '..'), { recursive: true })
    await writeFile(join(broken, name), `export const handler = () => { throw new Error('no store today') }`)
  }
  const failed = await command.run(['--functions', broken])
  expect(failed).toMatchObject({ exitCode: 1, text: expect.stringMatching(/bootstrap failed: .*no store today/) })
  expect(failed.text).toContain('No process is left.')
  await nothingIsLeft()
})

test.runIf(isLong)('rejected settings fail the command with the reason and leave nothing behind', async () => {
  const failed = await command.run(['--functions', command.functions], { PLAT_LIMIT_API_BURST: 'many' })
  expect(failed).toMatchObject({ exitCode: 1, text: expect.stringContaining('PLAT_LIMIT_API_BURST') })
  await nothingIsLeft()
})

test.runIf(isLong)('an interrupted start ends the simulator', async () => {
  const program = command.begin(['--functions', command.functions])
  await program.writes(/is evaluated/)
  program.interrupt()
  await program.ended
  await nothingIsLeft()
})

test.runIf(isLong)('a port in use fails the command with the reason', async () => {
  await using taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const failed = await command.start('--port', String(port))
  expect(failed).toMatchObject({ exitCode: 1, text: expect.stringContaining(`127.0.0.1:${port} is in use`) })
})

test.runIf(isLong)('of two concurrent starts one runs and the other reports why it ended', async () => {
  const both = await Promise.all([command.start(), command.start()])
  const running = command.state?.ready?.url ?? 'none'
  expect(await isReady(running)).toBe(true)
  const winner = both.find(({ text }) => urlOf(text) === running)
  expect(winner).toMatchObject({ exitCode: 0 })
  const loser = both.find((each) => each !== winner)
  const end = loser?.exitCode === 1 ? /Another simulator is starting|was stopped before/ : /Stopping the simulator/
  expect(loser?.exitCode === 1 ? loser.text : winner?.text).toMatch(end)
})

test.runIf(isLong)('SIGTERM ends the simulator and its function processes', async () => {
  expect((await command.processes()).length).toBeGreaterThan(1)
  process.kill(command.state?.pid ?? 0, 'SIGTERM')
  await nothingIsLeft()
})
