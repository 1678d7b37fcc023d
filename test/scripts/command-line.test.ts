import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '../../scripts/source.ts'
import { sampled } from '../support/long.ts'

const run = promisify(execFile)
const { scripts }: { scripts: Record<string, string> } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
const withoutOptions = ['openapi', 'screenshots', 'sbom', 'check', 'test', 'format']
const commands = Object.entries(scripts).filter(([name]) => !withoutOptions.includes(name))

test.each(sampled(commands, 6))(
  '%s prints its usage with --help, and rejects unknown options',
  async (name, script) => {
    const env = { PATH: `${join(root, 'node_modules/.bin')}:${process.env['PATH']}` }
    const call = (option: string) => run('sh', ['-c', `${script} "$0"`, option], { cwd: root, env })
    const usage = new RegExp(`^npm (?:run (?:-s )?)?${name}\\b`, 'm')
    expect(await call('--help')).toEqual({ stdout: expect.stringMatching(usage), stderr: '' })
    const message = expect.stringMatching(/^Unknown option '--unknown'/)
    await expect(call('--unknown')).rejects.toMatchObject({ code: 2, stdout: '', stderr: message })
  },
)

test('paths are relative to the folder in which npm was called', async () => {
  const env = { PATH: process.env['PATH'], INIT_CWD: '/somewhere' }
  const file = join(root, 'packages/local/src/backup/restore.ts')
  await expect(run(process.execPath, [file, 'a.backup'], { cwd: root, env })).rejects.toMatchObject({
    code: 1,
    stderr: '/somewhere/a.backup does not exist.\n',
  })
})
