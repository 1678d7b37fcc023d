import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CliError } from '@platform/cli/exit'
import { generateKeyPair } from '@platform/oci/signature/key'
import { expect, test, vi } from 'vitest'
import { currentCommit } from '../../scripts/release/commit.ts'
import { parseOptions } from '../../scripts/release/options.ts'
import { root } from '../../scripts/source.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const run = promisify(execFile)
const words = (line: string) => line.split(' ').filter(Boolean)

test.each([
  ['', /--version/],
  ['--version', /argument missing/],
  ['--version 1', /--version: must be a SemVer/],
  ['--version v1.0.0', /--version: must be a SemVer/],
  ['--version 01.0.0', /--version: must be a SemVer/],
  ['--version 1.0.0 extra', /positional/],
  ['--version 1.0.0 --force', /Unknown option '--force'/],
  [`--version 1.0.0-${'a'.repeat(130)}`, /at most 128/],
  ['--version 1.0.0 --notes-url notes', /--notes-url: must be an http/],
  ['--version 1.0.0 --notes-url ftp://example.com/notes', /--notes-url: must be an http/],
  ['--version 1.0.0 --min-from one', /--min-from: must be a SemVer/],
  ['--version 1.0.0 --min-from 1.0.0', /--min-from: must be older/],
  ['--version 1.0.0 --min-from 1.0.1', /--min-from: must be older/],
  ['--version 1.0.0 --source releases', /--source: must be registry\/repository/],
  ['--version 1.0.0 --source example.com/releases:1.0.0', /--source: must be registry\/repository/],
  ['--version 1.0.0 --source https://example.com/releases', /--source: must be registry\/repository/],
  ['--version 1.0.0 --source example.com/releases --output folder', /--output: .*use one of them/],
  ['--version 1.0.0 --output=', /--output/],
])('npm run release -- %s is refused, and what is wrong is named', (line, message) => {
  expect(() => parseOptions(words(line))).toThrow(CliError)
  expect(() => parseOptions(words(line))).toThrow(message)
})

test('everything that is wrong is named at once', () => {
  expect(() => parseOptions(words('--version 1 --source 1 --min-from 1'))).toThrow(
    /--version: .*\n--min-from: .*\n--source: /,
  )
})

test('what is given is taken, and paths are meant from where npm was called', () => {
  vi.stubEnv('INIT_CWD', '/somewhere')
  const line = '--version 1.1.0-rc.1+2 --notes-url https://example.com/1 --min-from 1.0.0 --key a.key --output out'
  expect(parseOptions(words(line))).toEqual({
    version: '1.1.0-rc.1+2',
    releaseNotesUrl: 'https://example.com/1',
    minFrom: '1.0.0',
    key: '/somewhere/a.key',
    output: '/somewhere/out',
  })
})

test('the time of a release is that of the commit, or the one that is given', async () => {
  const { stdout } = await run('git', ['log', '-1', '--format=%ct'], { cwd: root })
  expect(Date.parse((await currentCommit({})).createdAt)).toBe(Number(stdout) * 1000)
  expect((await currentCommit({ SOURCE_DATE_EPOCH: '0' })).createdAt).toBe('1970-01-01T00:00:00.000Z')
  await expect(currentCommit({ SOURCE_DATE_EPOCH: 'yesterday' })).rejects.toThrow(/SOURCE_DATE_EPOCH/)
})

test.each([
  ['--version 1', 2, /--version: must be a SemVer/],
  ['--version 1.0.0', 2, /No signing key in .*--key FILE/],
  ['--version 1.0.0 --key README.md', 2, /Cannot sign with .*README\.md/],
  ['--version 1.0.0 --key missing.key', 2, /Cannot read .*missing\.key/],
  ['--version 1.0.0 --key own.key', 2, /No platform is running here\..*--source/],
])('the command with %s ends with %s and says why', async (line, code, message) => {
  await using folder = await temporaryFolder()
  const { privateKeyPem } = generateKeyPair()
  await writeFile(join(folder.path, 'own.key'), privateKeyPem)
  const args = words(line).map((word) => (word === 'own.key' ? join(folder.path, word) : word))
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const env = { PATH, NODE_COMPILE_CACHE, PLAT_DATA_DIR: folder.path }
  const ended = run(process.execPath, ['scripts/release.ts', ...args], { cwd: root, env })
  await expect(ended).rejects.toMatchObject({ code, stderr: expect.stringMatching(message), stdout: '' })
})
