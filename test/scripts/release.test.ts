import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { strFromU8, unzipSync } from 'fflate'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { functionNames } from '@platform/core/updates/function-names'
import { lambdaFlags } from '../simulator/lambda/node-program.ts'
import { functionNames as filesIn } from '../../packages/local/src/function-files.ts'
import { bundleAll } from '../../scripts/bundle.ts'
import { artifactOf } from '../../scripts/release/artifact.ts'
import { servedAssets, packFunctions } from '../../scripts/release/functions.ts'
import { zipOf } from '../../scripts/release/zip.ts'
import { root } from '../../scripts/source.ts'
import { bundledFunctions, packedFunctions } from '../support/build-cache.ts'
import { isLong } from '../support/long.ts'
import { asItIs, builtFunctions } from '../support/releases.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const run = promisify(execFile)
const version = '99.0.0'
const facts = { version, createdAt: '2026-01-01T00:00:00.000Z' }

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let zips: Map<string, Uint8Array>

beforeAll(async () => {
  folder = await temporaryFolder()
  // By default those that other tests use as well; `npm run release` packs one in the long journey of an update.
  zips = isLong ? await packedFunctions(version) : await builtFunctions(version, asItIs)
}, 180_000)
afterAll(() => folder[Symbol.asyncDispose]())

test('a release holds every function that there is', async () => {
  expect(functionNames.toSorted()).toEqual(await filesIn(join(root, 'functions')))
  expect([...zips.keys()]).toEqual(functionNames.toSorted())
})

/** With and without parts that are loaded late. */
const some = ['health', 'auth']

test.skipIf(isLong)(
  'the same code makes the same bytes, whenever it is built and with whatever else',
  async () => {
    const before = await bundledFunctions()
    for (const [name, { files }] of await bundleAll(some, undefined)) {
      const changed = [...files].filter(
        ([file, content]) => Buffer.compare(content, before.get(name)?.files.get(file) ?? Buffer.of()) !== 0,
      )
      expect([name, changed.map(([file]) => file)]).toEqual([name, []])
    }
  },
  180_000,
)

test('an archive is the same wherever it is made', () => {
  const files = { 'index.mjs': Buffer.from('1') }
  const here = zipOf(files)
  vi.stubEnv('TZ', 'Pacific/Kiritimati')
  expect(zipOf(files)).toEqual(here)
  vi.unstubAllEnvs()
})

// Two whole builds.
test.runIf(isLong)('the same code makes the same release, wherever and whenever it is built', async () => {
  vi.stubEnv('TZ', 'Pacific/Kiritimati')
  const again = await packFunctions(version, join(folder.path, 'second'))
  vi.unstubAllEnvs()
  const changed = [...zips].filter(([name, zip]) => Buffer.compare(zip, again.get(name) ?? Buffer.of()) !== 0)
  expect(changed.map(([name]) => name)).toEqual([])
  expect(artifactOf(facts, again).digest).toBe(artifactOf(facts, zips).digest)
})

test('another version, time or minimum makes another release of the same code', () => {
  const digests = [facts, { ...facts, version: '99.0.1' }, { ...facts, minFrom: '1.0.0' }].map(
    (each) => artifactOf(each, zips).digest,
  )
  expect(new Set(digests).size).toBe(3)
})

test('an archive is the same in whatever order its files are given', () => {
  const [one, two] = [Buffer.from('1'), Buffer.from('2')]
  expect(zipOf({ 'dist/b': two, 'a.mjs': one })).toEqual(zipOf({ 'a.mjs': one, 'dist/b': two }))
})

/** Loads functions from their folders as Lambda would, and what they load late; asks each for its version. */
const asking = `
  import { readdir } from 'node:fs/promises'
  const [folder, names] = [process.argv[1], process.argv.slice(2)]
  const answers = names.map(async (name) => {
    const at = folder + '/' + name + '/'
    const { handler } = await import(at + 'index.mjs')
    for (const file of await readdir(at)) if (file.endsWith('.mjs')) await import(at + file)
    return [name, await handler({ platformProbe: true }, {})]
  })
  console.log(JSON.stringify(Object.fromEntries(await Promise.all(answers))))`

test('every function is whole: it loads from its archive alone, and says its version to a probe', async () => {
  const unpacked = join(folder.path, 'unpacked')
  for (const [name, zip] of zips) {
    const files = Object.entries(unzipSync(zip))
    const dist = (servedAssets[name] ?? []).map((file) => `dist/${file}`)
    const paths = files.map(([path]) => path)
    expect(paths.filter((path) => path.startsWith('dist/'))).toEqual(dist)
    expect(paths).toContain('index.mjs')
    expect(paths.filter((path) => !/^(?:dist\/[\w.-]+|[\w-]+\.mjs)$/.test(path))).toEqual([])
    for (const [path, content] of files) {
      await mkdir(dirname(join(unpacked, name, path)), { recursive: true })
      await writeFile(join(unpacked, name, path), content)
    }
  }
  const args = [...lambdaFlags, '--input-type=module', '-e', asking, unpacked, ...functionNames]
  const { stdout } = await run(process.execPath, args, { cwd: folder.path, env: {} })
  expect(JSON.parse(stdout)).toEqual(Object.fromEntries(functionNames.map((name) => [name, { version }])))
})

test('what functions hand out is in their archives', async () => {
  for (const name of functionNames) {
    const source = await readFile(join(root, `functions/${name}.ts`), 'utf8')
    const asked = [...source.matchAll(/\basset(?:Bytes)?\('([\w.-]+)'\)/g)].map(([, file = '']) => file).toSorted()
    expect(asked, name).toEqual(servedAssets[name] ?? [])
  }
  const { 'dist/relay.mjs': relay = Buffer.of() } = unzipSync(zips.get('meta') ?? Buffer.of())
  expect(strFromU8(relay)).toMatch(/^#!\/usr\/bin\/env node\n/)
})
