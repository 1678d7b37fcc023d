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
