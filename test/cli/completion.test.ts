import { bashScript } from '@platform/cli/completion/bash'
import { fishScript } from '@platform/cli/completion/fish'
import { placesOf } from '@platform/cli/completion/tree'
import { zshScript } from '@platform/cli/completion/zsh'
import { program } from '@platform/cli/program'
import { execFile, spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'

const run = promisify(execFile)
const places = placesOf(program())
const hasShell = (name: string): boolean => spawnSync(name, ['-c', 'exit']).status === 0

/** Completions of a command line in bash. */
async function offered(...line: string[]): Promise<string[]> {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'plat.bash')
  await writeFile(file, bashScript(places))
  const script = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _plat; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout } = await run('bash', ['-c', script, 'bash', file, ...line])
  return stdout.trim().split('\n')
}

test.for([
  ['bash', bashScript, ['-n']],
  ['zsh', zshScript, ['-n']],
  ['fish', fishScript, ['--no-execute']],
] as const)('%s takes its script', async ([shell, script, args], { skip }) => {
  skip(!hasShell(shell), `${shell} is not installed`)
  await using folder = await temporaryFolder()
  const file = join(folder.path, `plat.${shell}`)
  await writeFile(file, script(places))
  expect((await run(shell, [...args, file])).stderr).toBe('')
})

test('bash completes commands, options and option values', async () => {
  expect(await offered('plat', 'clu')).toEqual(['cluster'])
  expect(await offered('plat', 'cluster', 'l')).toEqual(['list'])
  expect(await offered('plat', 'cluster', 'list', '--sta')).toEqual(['--status'])
  expect(await offered('plat', 'cluster', 'list', '--status', '')).toEqual([
    'Healthy',
    'Degraded',
    'Pending',
    'Offline',
  ])
  expect(await offered('plat', 'cluster', 'list', '--status', 'Healthy', '--j')).toEqual(['--json'])
  expect(await offered('plat', 'completion', 'z')).toEqual(['zsh'])
})

test('each shell’s completion contains every command', () => {
  const last = places.map(({ path }) => path.split(' ').at(-1)!)
  for (const script of [bashScript(places), zshScript(places), fishScript(places)]) {
    expect(last.filter((word) => !script.includes(word))).toEqual([])
  }
})

test('every command has a description, and every command with output has --json', () => {
  const leaves = places.filter(({ path }) => !places.some((other) => other.path.startsWith(`${path} `)))
  const textual = ['plat completion', 'plat audit export']
  const silent = leaves.filter(({ words }) => words.some(({ meaning, text }) => meaning === '' && text.startsWith('-')))
  expect(silent.map(({ path }) => path)).toEqual([])
  const withoutJson = leaves.filter(({ words }) => !words.some(({ text }) => text === '--json'))
  expect(withoutJson.map(({ path }) => path).toSorted()).toEqual(textual.toSorted())
})

test('npx plat uses the project’s Node', async () => {
  const path = process.env['PATH']!.split(delimiter).filter((folder) => !folder.includes('node_modules'))
  const { stdout } = await run('npx', ['plat', '--version'], { env: { ...process.env, PATH: path.join(delimiter) } })
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
})
