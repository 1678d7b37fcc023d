import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { strFromU8, unzipSync } from 'fflate'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import packageFile from '../../package.json' with { type: 'json' }
import { CliError } from '@platform/cli/exit'
import { functionNames } from '@platform/core/updates/function-names'
import { generateKeyPair } from '@platform/oci/signature/key'
import { listFunctionNames } from '../../packages/local/src/function-files.ts'
import { bundleAll } from '../../scripts/bundle.ts'
import { artifactOf } from '../../scripts/release/artifact.ts'
import { readCurrentCommit } from '../../scripts/release/commit.ts'
import { packFunctions, replaceRelay, servedAssets } from '../../scripts/release/functions.ts'
import { parseOptions } from '../../scripts/release/options.ts'
import { zipOf } from '../../scripts/release/zip.ts'
import { root } from '../../scripts/source.ts'
import { lambdaFlags } from '../simulator/lambda/node-program.ts'
import { bundledFunctions, deployedFunctions, packedFunctions } from '../support/build-cache.ts'
import { isLong, sampled } from '../support/long.ts'
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
  ['--version 1.0.0 --notes-url https://example.com/1 --min-from 1.0.0', /--min-from: must be older/],
  ['--version 1.0.0 --notes-url https://example.com/1 --min-from 1.0.1', /--min-from: must be older/],
  ['--version 1.0.0 --source releases', /--source: must be registry\/repository/],
  ['--version 1.0.0 --source example.com/releases:1.0.0', /--source: must be registry\/repository/],
  ['--version 1.0.0 --source https://example.com/releases', /--source: must be registry\/repository/],
  [
    '--version 1.0.0 --notes-url https://example.com/1 --source example.com/releases --output folder',
    /--output: .*use one of them/,
  ],
  ['--version 1.0.0 --output=', /--output/],
  ['--version 1 --source 1 --min-from 1', /--version: .*\n--notes-url: .*\n--min-from: .*\n--source: /],
])('npm run release -- %s is rejected', (line, message) => {
  expect(() => parseOptions(words(line))).toThrow(CliError)
  expect(() => parseOptions(words(line))).toThrow(message)
})

test('a release needs the address of its notes', () => {
  expect(() => parseOptions(words('--version 1.0.0'))).toThrow(/--notes-url: must be an http/)
})

test('option paths are relative to the folder in which npm was called', () => {
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

test('the time of a release is that of the commit or SOURCE_DATE_EPOCH', async () => {
  const { stdout } = await run('git', ['log', '-1', '--format=%ct'], { cwd: root })
  expect(Date.parse((await readCurrentCommit({})).createdAt)).toBe(Number(stdout) * 1000)
  expect((await readCurrentCommit({ SOURCE_DATE_EPOCH: '0' })).createdAt).toBe('1970-01-01T00:00:00.000Z')
  await expect(readCurrentCommit({ SOURCE_DATE_EPOCH: 'yesterday' })).rejects.toThrow(/SOURCE_DATE_EPOCH/)
})

const refusals: [line: string, code: number, message: RegExp][] = [
  ['--version 1', 2, /--version: must be a SemVer/],
  ['--version 1.0.0 --notes-url https://example.com/1', 2, /No signing key in .*--key FILE/],
  ['--version 1.0.0 --notes-url https://example.com/1 --key README.md', 2, /Cannot sign with .*README\.md/],
  ['--version 1.0.0 --notes-url https://example.com/1 --key missing.key', 2, /Cannot read .*missing\.key/],
  ['--version 1.0.0 --notes-url https://example.com/1 --key own.key', 2, /No platform is running here\..*--source/],
]

test.each(sampled(refusals))('the command with %s exits with %s and the reason', async (line, code, message) => {
  await using folder = await temporaryFolder()
  await writeFile(join(folder.path, 'own.key'), generateKeyPair().privateKeyPem)
  const args = words(line).map((word) => (word === 'own.key' ? join(folder.path, word) : word))
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const env = { PATH, NODE_COMPILE_CACHE, PLAT_DATA_DIR: folder.path }
  const command = run(process.execPath, ['scripts/release.ts', ...args], { cwd: root, env })
  await expect(command).rejects.toMatchObject({ code, stderr: expect.stringMatching(message), stdout: '' })
})

const longVersion = '99.0.0'
const facts = {
  version: longVersion,
  createdAt: '2026-01-01T00:00:00.000Z',
  releaseNotesUrl: 'https://example.com/notes',
}
let folder: Awaited<ReturnType<typeof temporaryFolder>>
let zips: Map<string, Uint8Array>

beforeAll(async () => {
  folder = await temporaryFolder()
  // Long runs pack a release; others use the build that the tests of the deployment share.
  const build = async () => new Map([...(await deployedFunctions())].map(([name, files]) => [name, zipOf(files)]))
  zips = isLong ? await packedFunctions(longVersion) : await build()
}, 180_000)
afterAll(() => folder[Symbol.asyncDispose]())

test('a release contains every function', async () => {
  expect(functionNames.toSorted()).toEqual(await listFunctionNames(join(root, 'functions')))
  expect([...zips.keys()]).toEqual(functionNames.toSorted())
})

test('the relay of a release has its version, and the key that verifies later ones', async () => {
  const files = new Map([['meta', { 'index.mjs': Buffer.from('1') }]])
  const publicKeyPem = 'the public key'
  await replaceRelay(files, folder.path, { version: '99.0.0', publicKeyPem })
  expect(Object.keys(files.get('meta')!)).toEqual(['index.mjs', 'dist/relay.mjs'])
  expect((await run(process.execPath, [join(folder.path, 'relay.mjs'), '--version'])).stdout).toBe(
    'platform-relay 99.0.0\n',
  )
  expect(await readFile(join(folder.path, 'relay.mjs'), 'utf8')).toContain(publicKeyPem)
})

test.skipIf(isLong)('the same code gives the same bytes, whichever functions are bundled with it', async () => {
  const functionsBefore = await bundledFunctions()
  // One function with chunks that are loaded later, and one without.
  for (const [name, { files }] of await bundleAll(['queue/batches', 'auth'], undefined)) {
    const changedFiles = [...files].filter(
      ([file, content]) => Buffer.compare(content, functionsBefore.get(name)?.files.get(file) ?? Buffer.of()) !== 0,
    )
    expect([name, changedFiles.map(([file]) => file)]).toEqual([name, []])
  }
})

test('an archive is the same in any time zone and any order of files', () => {
  const [one, two] = [Buffer.from('1'), Buffer.from('2')]
  const archive = zipOf({ 'dist/b': two, 'a.mjs': one })
  vi.stubEnv('TZ', 'Pacific/Kiritimati')
  expect(zipOf({ 'a.mjs': one, 'dist/b': two })).toEqual(archive)
  vi.unstubAllEnvs()
})

test.runIf(isLong)('the same code gives the same release in another folder and time zone', async () => {
  vi.stubEnv('TZ', 'Pacific/Kiritimati')
  const secondZips = await packFunctions(longVersion, join(folder.path, 'second'))
  vi.unstubAllEnvs()
  const changedZips = [...zips].filter(([name, zip]) => Buffer.compare(zip, secondZips.get(name) ?? Buffer.of()) !== 0)
  expect(changedZips.map(([name]) => name)).toEqual([])
  expect(artifactOf(facts, secondZips).digest).toBe(artifactOf(facts, zips).digest)
})

test('another version or minimum gives another release', () => {
  const digests = [facts, { ...facts, version: '99.0.1' }, { ...facts, minFrom: '1.0.0' }].map(
    (each) => artifactOf(each, zips).digest,
  )
  expect(new Set(digests).size).toBe(3)
})

/** Loads functions with all their chunks as Lambda does, and sends each a version probe. */
const probe = `
  import { readdir } from 'node:fs/promises'
  const [root, names] = [process.argv[1], process.argv.slice(2)]
  const responses = names.map(async (name) => {
    const folder = root + '/' + name + '/'
    const { handler } = await import(folder + 'index.mjs')
    for (const file of await readdir(folder)) if (file.endsWith('.mjs')) await import(folder + file)
    return [name, await handler({ platformProbe: true }, {})]
  })
  console.log(JSON.stringify(Object.fromEntries(await Promise.all(responses))))`

test.runIf(isLong)('every function loads from its archive alone and reports its version', async () => {
  const unpackedFolder = join(folder.path, 'unpacked')
  for (const [name, zip] of zips) {
    const files = Object.entries(unzipSync(zip))
    const paths = files.map(([path]) => path)
    expect(paths.filter((path) => path.startsWith('dist/'))).toEqual(
      (servedAssets[name] ?? []).map((file) => `dist/${file}`),
    )
    expect(paths).toContain('index.mjs')
    expect(paths.filter((path) => !/^(?:dist\/[\w.-]+|[\w-]+\.mjs)$/.test(path))).toEqual([])
    for (const [path, content] of files) {
      await mkdir(dirname(join(unpackedFolder, name, path)), { recursive: true })
      await writeFile(join(unpackedFolder, name, path), content)
    }
  }
  const args = [...lambdaFlags, '--input-type=module', '-e', probe, unpackedFolder, ...functionNames]
  const { stdout } = await run(process.execPath, args, { cwd: folder.path, env: {} })
  const version = isLong ? longVersion : packageFile.version
  expect(JSON.parse(stdout)).toEqual(Object.fromEntries(functionNames.map((name) => [name, { version }])))
})

test('archives contain the assets that their function serves', async () => {
  for (const name of functionNames) {
    const source = await readFile(join(root, `functions/${name}.ts`), 'utf8')
    const files = [...source.matchAll(/\b(?:load|read)Asset\('([\w.-]+)'\)/g)].map(([, file = '']) => file).toSorted()
    expect(files, name).toEqual(servedAssets[name] ?? [])
  }
  const { 'dist/relay.mjs': relay = Buffer.of() } = unzipSync(zips.get('meta') ?? Buffer.of())
  expect(strFromU8(relay)).toMatch(/^#!\/usr\/bin\/env node\n/)
})
