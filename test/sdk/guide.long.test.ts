import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { patternOf, sectionsOf, type Step } from '../support/guide.ts'
import { Plat } from '../support/plat.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type CommandOutput, Terminal } from '../support/terminal.ts'

/**
 * Follows the ten-minute tutorial of docs/modules.md: types the commands, with a new home folder, and expects the
 * output that the guide shows. Only the ports are replaced. Later sections depend on earlier ones.
 */

const checkout = fileURLToPath(new URL('../..', import.meta.url))
const guide = await readFile(join(checkout, 'docs/modules.md'), 'utf8')
const [, tenMinutes = ''] = /^## Ten minutes$(.*?)^## /ms.exec(guide) ?? []
const sections = sectionsOf(tenMinutes)

const resources = new AsyncDisposableStack()
const terminals = new Map<string, Terminal>()
let home: string
let port: number

beforeAll(async () => {
  home = resources.use(await temporaryFolder()).path
  port = await freePort()
  const PATH = process.env['PATH']!.split(delimiter).filter((folder) => !folder.includes('node_modules'))
  const settings = {
    PLAT_PORT: `${port}`,
    PLAT_DATA_DIR: join(home, 'data'),
    PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: '1',
  }
  const env = { HOME: home, PATH: PATH.join(delimiter), ...settings }
  for (const name of ['platform', 'author']) terminals.set(name, resources.use(new Terminal({ cwd: checkout, env })))
})
afterAll(() => resources.disposeAsync())

/** Returns a free port whose successor is free too. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = await portOf(0).catch(() => 65_535)
    if (port < 65_535 && (await portOf(port + 1).catch(() => undefined)) !== undefined) return port
  }
}

async function portOf(requested: number): Promise<number> {
  const server = createServer().listen(requested, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}

const withPorts = (text: string): string =>
  text.replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`).replaceAll('127.0.0.1:8081', `127.0.0.1:${port + 1}`)

function terminalOf(name: string): Terminal {
  const terminal = terminals.get(name)
  if (terminal === undefined) throw new Error(`The guide has no terminal ${name}.`)
  return terminal
}

const isBackground = (command: string): boolean => command.endsWith('npm start')

async function follow(step: Step): Promise<void> {
  if (step.kind === 'change') return change(step)
  const { command, shown } = step
  const terminal = terminalOf(step.terminal)
  const pattern = patternOf(shown.map(withPorts))
  if (command === undefined)
    await waitFor(`${shown.join('\n')} is shown`, async () => lines(terminal).some((line) => pattern.test(line)))
  else if (isBackground(command)) await untilShown(terminal, withPorts(command), pattern)
  else {
    const { output, exitCode } = await terminal.run(withPorts(command))
    expect({ command, output: withNewline(output), exitCode }).toEqual({
      command,
      output: expect.stringMatching(pattern),
      exitCode: 0,
    })
  }
}

let readPlatform: () => CommandOutput

async function untilShown(terminal: Terminal, command: string, pattern: RegExp): Promise<void> {
  readPlatform = terminal.type(command)
  await waitFor(`${command} shows ${pattern}`, async () => {
    const { output, exitCode } = readPlatform()
    if (exitCode !== undefined) throw new Error(`${command} ended with ${exitCode}: ${output}`)
    return pattern.test(withNewline(output))
  })
}

const lines = ({ text }: Terminal): string[] => text.split('\n').map(withNewline)

const withNewline = (output: string): string => (output === '' || output.endsWith('\n') ? output : `${output}\n`)

async function change({ file, before, after }: Step & { kind: 'change' }): Promise<void> {
  const { output } = await terminalOf('author').run('pwd')
  const path = join(output.trim(), file)
  const parts = (await readFile(path, 'utf8')).split(before)
  expect(parts, `${before} occurs once in ${file}`).toHaveLength(2)
  await writeFile(path, parts.join(after))
}

test.for(sections)('the guide works: $heading', async ({ steps }) => {
  for (const step of steps) await follow(step)
})

const isLive = (): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/health/live`).then(
    ({ ok }) => ok,
    () => false,
  )

test('the guide works: Ctrl-C stops the platform', async () => {
  expect(await isLive()).toBe(true)
  const terminal = terminalOf('platform')
  terminal.interrupt()
  await waitFor('npm start ends', async () => terminal.isGone || readPlatform().exitCode !== undefined)
  expect(await isLive()).toBe(false)
})

test('the guide contains all necessary commands', () => {
  const steps = sections.flatMap((section) => section.steps)
  const commands = steps.flatMap((step) => (step.kind === 'command' ? step.command : []))
  const verbs = ['key', 'new', 'build', 'push', 'scan', 'catalog', 'install', 'list', 'uninstall']
  for (const verb of verbs) expect(commands).toContainEqual(expect.stringMatching(`^plat module ${verb}`))
  expect(sections.every((section) => section.steps.length > 0)).toBe(true)
})

test('the samples of the guide compile', async () => {
  await using folder = await temporaryFolder()
  const plat = new Plat(folder.path, { PLAT_DATA_DIR: folder.path }).in(folder.path)
  await plat.prints(['module', 'new', 'greeting'])
  const samples = [...guide.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text = '']) => text)
  expect(samples.length).toBeGreaterThan(1)
  await mkdir(join(folder.path, 'greeting/src/samples'))
  for (const [index, text] of samples.entries()) {
    await writeFile(join(folder.path, `greeting/src/samples/${index}.ts`), text)
  }
  const tsc = promisify(execFile)(join(checkout, 'node_modules/.bin/tsc'), ['-p', join(folder.path, 'greeting')])
  expect((await tsc.catch((error: { stdout: string }) => error)).stdout).toBe('')
})
