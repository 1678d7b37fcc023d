import { execFile } from 'node:child_process'
import { copyFile, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openApiText } from '../../scripts/openapi.ts'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** The generators are pinned in a package of their own, which `npm ci` of the repository does not install. */
const packageFolder = join(import.meta.dirname, 'clients')

const run = async (cwd: string, program: string, args: readonly string[]): Promise<string> => {
  const { stdout, stderr } = await promisify(execFile)(program, [...args], { cwd, maxBuffer: 2 ** 24 })
  return stdout + stderr
}

const generators = [
  ['openapi-ts', '-i', 'openapi.json', '-o', 'hey-api', '--no-log-file'],
  ['swagger-typescript-api', 'generate', '-p', 'openapi.json', '-o', 'swagger-typescript-api', '-n', 'api.ts'],
  ['orval', '--config', 'orval.config.mjs'],
] as const

test('clients of hey-api, swagger-typescript-api and orval compile without errors or warnings', async () => {
  await run(packageFolder, 'npm', ['ci', '--no-audit', '--no-fund'])
  await using folder = await temporaryFolder()
  const { path } = folder
  await symlink(join(packageFolder, 'node_modules'), join(path, 'node_modules'))
  for (const file of ['tsconfig.json', 'orval.config.mjs']) await copyFile(join(packageFolder, file), join(path, file))
  await writeFile(join(path, 'openapi.json'), openApiText())
  for (const [program, ...args] of generators) {
    const output = await run(path, join(path, 'node_modules/.bin', program), args)
    console.log(`${program}: ${output.trim().split('\n').at(-1)}`)
    expect(output).not.toMatch(/warn|error|unsupported|❗|⚠/i)
  }
  expect(await run(path, join(path, 'node_modules/.bin/tsc'), ['-p', '.'])).toBe('')
  for (const file of ['hey-api/sdk.gen.ts', 'swagger-typescript-api/api.ts', 'orval/fetch.ts', 'orval/zod.ts'])
    expect((await readFile(join(path, file), 'utf8')).length, file).toBeGreaterThan(50_000)
})
