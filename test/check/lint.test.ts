import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { root } from '../../scripts/source.ts'

/** Lints one file with this repository's configuration and returns the report. */
async function lint(path: string, text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'lint-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await cp(join(root, '.oxlintrc.json'), join(folder, '.oxlintrc.json'))
  await writeFile(join(folder, 'tsconfig.json'), '{ "compilerOptions": { "strict": true, "target": "es2024" } }')
  await mkdir(join(folder, dirname(path)), { recursive: true })
  await writeFile(join(folder, path), text)
  return new Promise((resolve) => {
    const oxlint = join(root, 'node_modules/.bin/oxlint')
    execFile(oxlint, ['--format=unix', '.'], { cwd: folder }, (_error, output) => resolve(output))
  })
}

test.for([
  ['no-floating-promises', 'scripts/x.ts', 'const work = async () => {}\nwork()\n'],
  ['no-misused-promises', 'scripts/x.ts', 'const work = async () => true\nif (work()) console.log(1)\n'],
  ['no-default-export', 'packages/core/src/x.ts', 'export default 1\n'],
  ['no-namespace', 'packages/core/src/x.ts', 'export namespace X {\n  export const y = 1\n}\n'],
  ['no-restricted-properties', 'packages/core/src/x.ts', 'export const now = () => Date.now()\n'],
  ['no-restricted-properties', 'functions/queue/x.ts', 'export const now = () => Math.random()\n'],
  ['no-restricted-globals', 'packages/http/src/x.ts', `export const get = () => fetch('http://localhost')\n`],
  ['no-restricted-imports', 'packages/core/src/x.ts', `export * as http from 'node:http'\n`],
  ['max-lines', 'packages/core/src/x.ts', 'export const x = 1\n'.padEnd(300, '\n')],
] as const)('the linter reports %s in %s', async ([rule, path, text]) => {
  expect(await lint(path, text)).toContain(rule)
})

test.for([
  ['packages/core/src/clock.ts', 'export const now = () => Date.now()\n'],
  ['vitest.config.ts', 'export default {}\n'],
  ['packages/core/src/outbound/outbound.ts', `export * as http from 'node:http'\n`],
  ['scripts/x.ts', 'const work = async () => {}\nawait work()\n'],
] as const)('the linter accepts %s', async ([path, text]) => {
  expect(await lint(path, text)).toBe('')
})
