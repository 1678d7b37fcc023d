import { bashScript } from '@platform/cli/completion/bash'
import { fishScript } from '@platform/cli/completion/fish'
import { completionsOf } from '@platform/cli/completion/tree'
import { zshScript } from '@platform/cli/completion/zsh'
import { createProgram } from '@platform/cli/program'
import { execFile, spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'

const run = promisify(execFile)
const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
const commands = completionsOf(createProgram())
const hasShell = (name: string): boolean => spawnSync(name, ['-c', 'exit']).status === 0

async function offeredBy(...line: string[]): Promise<string[]> {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'plat.bash')
  await writeFile(file, bashScript(commands))
  const script = `plat() { echo "$*" | sed 's/^context list --names$/home production/'; }; source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _plat; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout } = await run('bash', ['-c', script, 'bash', file, ...line])
  return stdout.trim().split('\n')
}

test.for([
  ['bash', bashScript, ['-n']],
  ['zsh', zshScript, ['-n']],
  ['fish', fishScript, ['--no-execute']],
] as const)('%s parses its script', async ([shell, script, args], { skip }) => {
  skip(!hasShell(shell), `${shell} is not installed`)
  await using folder = await temporaryFolder()
  const file = join(folder.path, `plat.${shell}`)
  await writeFile(file, script(commands))
  expect((await run(shell, [...args, file])).stderr).toBe('')
})

test.for([
  ['clu', ['cluster']],
  ['cluster l', ['list', 'label']],
  ['cluster list --sta', ['--status']],
  ['cluster list --status ', ['Healthy', 'Degraded', 'Pending', 'Offline']],
  ['cluster list --status Healthy --j', ['--json']],
  ['completion z', ['zsh']],
  ['context use p', ['production']],
  ['job list --context ', ['home', 'production']],
] as const)('bash completes: plat %s', async ([line, completions]) => {
  expect(await offeredBy('plat', ...line.split(' '))).toEqual(completions)
})

test('each shell’s completion contains every command', () => {
  const names = commands.map(({ path }) => path.split(' ').at(-1)!)
  for (const script of [bashScript(commands), zshScript(commands), fishScript(commands)]) {
    expect(names.filter((name) => !script.includes(name))).toEqual([])
  }
})

test('every command has a description, and every command with output has --json', () => {
  const leaves = commands.filter(({ path }) => !commands.some((other) => other.path.startsWith(`${path} `)))
  const textCommands = ['plat completion', 'plat audit export']
  const undescribedLeaves = leaves.filter(({ words }) =>
    words.some(({ description, text }) => description === '' && text.startsWith('-')),
  )
  expect(undescribedLeaves.map(({ path }) => path)).toEqual([])
  const withoutJson = leaves.filter(({ words }) => !words.some(({ text }) => text === '--json'))
  expect(withoutJson.map(({ path }) => path).toSorted()).toEqual(textCommands.toSorted())
})

test('npx plat uses the project’s Node', async () => {
  const path = process.env['PATH']!.split(delimiter).filter((folder) => !folder.includes('node_modules'))
  const { stdout } = await run('npx', ['plat', '--version'], { env: { ...process.env, PATH: path.join(delimiter) } })
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
})

test('loads the module tools only for module commands', async () => {
  const hooks = `import { registerHooks } from 'node:module'
    registerHooks({ load: (url, context, next) => (process.stderr.write(url + '\\n'), next(url, context)) })`
  const args = ['--import', `data:text/javascript,${encodeURIComponent(hooks)}`, main]
  for (const line of [['--version'], ['module', '--help'], ['module', 'push', '--help']]) {
    const { stderr } = await run(process.execPath, [...args, ...line])
    const loadedFiles = stderr.split('\n').filter((url) => url.startsWith('file:'))
    expect(loadedFiles).toContainEqual(expect.stringMatching(/commands\/module-author\.ts$/))
    expect(
      loadedFiles.filter(
        (url) =>
          !/\/packages\/(cli\/|contract\/src\/(unix-text|selector|merge-groups|results-csv)|oci\/src\/(make-folder|plain-transport)|relay\/src\/proxy)|\/node_modules\/(commander|openapi-fetch)\//.test(
            url,
          ),
      ),
    ).toEqual([])
  }
})

test('plat runs with a Node that cannot run TypeScript', async () => {
  const launcher = fileURLToPath(new URL('../../packages/cli/bin/plat.mjs', import.meta.url))
  const { stdout } = await run(process.execPath, ['--no-strip-types', launcher, '--version'])
  expect(stdout).toBe((await run(process.execPath, [launcher, '--version'])).stdout)
})
