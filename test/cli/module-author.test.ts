import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describeProject } from '@platform/cli/author/bundle'
import { openProject } from '@platform/cli/author/project'
import { scaffold } from '@platform/cli/author/scaffold'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { isLong, sampled } from '../support/long.ts'
import { Program } from '../support/program.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type Author, startAuthor } from './support/author.ts'

const run = promisify(execFile)
const pathOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const readJson = async (...path: string[]) => JSON.parse(await readFile(join(...path), 'utf8'))

async function imageIn(folder: string) {
  const blob = (digest: string) => readJson(folder, 'dist/image/blobs', ...digest.split(':'))
  const { manifests } = await readJson(folder, 'dist/image/index.json')
  const manifest = await blob(manifests[0].digest)
  return {
    tags: manifests.map(({ annotations }: any) => annotations['org.opencontainers.image.ref.name']),
    manifest,
    config: await blob(manifest.config.digest),
  }
}

let author: Author
let files: Record<string, string>

beforeAll(async () => {
  author = await startAuthor()
  const read = (file: string) => readFile(join(author.module, file), 'utf8')
  files = { 'src/main.ts': await read('src/main.ts'), 'module.json': await read('module.json') }
})
afterEach(async () => {
  for (const [file, text] of Object.entries(files)) await writeFile(join(author.module, file), text)
  await rm(join(author.module, 'dist'), { recursive: true, force: true })
})
afterAll(() => author[Symbol.asyncDispose]())

describe('a new module', () => {
  test('is built without changes into an image with module labels', async () => {
    await using author = await startAuthor({}, 'registry.example.com/modules/greeting')
    await author.change('module.json', '"author"', '"repositoryUrl": "https://example.com/greeting",\n    "author"')
    expect(await author.plat.json(['module', 'build', '--dir', 'greeting'])).toEqual({
      id: 'greeting',
      version: '0.1.0',
      digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    })
    const { tags, manifest, config } = await imageIn(author.module)
    expect(tags).toEqual(['0.1.0', 'latest'])
    expect(manifest.layers).toHaveLength(1)
    expect(config.config).toEqual({
      Entrypoint: ['node', '/app/main.mjs'],
      Cmd: [],
      WorkingDir: '/app',
      Labels: {
        'org.opencontainers.image.source': 'https://example.com/greeting',
        'org.platform.module': 'true',
        'org.platform.module.id': 'greeting',
        'org.platform.module.version': '0.1.0',
      },
    })
  })

  test.runIf(isLong)('has no type errors', async () => {
    const compilation = await run(pathOf('node_modules/.bin/tsc'), ['-p', author.module]).catch((error) => error)
    expect(compilation.stdout).toBe('')
  })

  test.for(sampled(['Greeting', 'a_b', '-x', 'v2', 'modules', 'catalog', 'x'.repeat(51), '../no-module-here'], 4))(
    'rejects the id %s and writes nothing',
    async (id) => {
      const message = expect.stringContaining(`${id} is not a valid module id`)
      await expect(scaffold(id)).rejects.toMatchObject({ exitCode: 2, message })
      await expect(stat(id)).rejects.toThrow('ENOENT')
    },
  )

  test('does not overwrite existing files', async () => {
    await writeFile(join(author.folder, 'taken'), 'content')
    const results = await Promise.all(['greeting', 'taken'].map((id) => author.plat.run(['module', 'new', id])))
    for (const each of results) expect(each).toMatchObject({ exitCode: 2, out: '' })
    expect(await readFile(join(author.folder, 'taken'), 'utf8')).toBe('content')
  })

  test('rejects an invalid registry', async () => {
    for (const image of ['greeting', 'registry.example.com/greeting:1.0.0', 'registry.example.com/Greeting']) {
      await expect(scaffold('other', image)).rejects.toMatchObject({
        exitCode: 2,
        message: expect.stringContaining(image),
      })
    }
  })
})

describe('a build', () => {
  test.runIf(isLong)('is reproducible in any folder', async () => {
    const digestOf = async (folder: string) =>
      (await author.plat.json(['module', 'build', '--dir', folder])).digest as string
    const firstDigest = await digestOf('greeting')
    await cp(author.module, join(author.folder, 'elsewhere/copy'), { recursive: true })
    expect(await digestOf('greeting')).toBe(firstDigest)
    expect(await digestOf('elsewhere/copy')).toBe(firstDigest)
    await author.change('src/main.ts', 'The module is running', 'There I was')
    expect(await digestOf('greeting')).not.toBe(firstDigest)
  })

  test('updates only the generated fields of the manifest and keeps its formatting', async () => {
    await author.plat.prints(['module', 'manifest', '--dir', 'greeting'])
    const file = join(author.module, 'module.json')
    const manifest = await readJson(file)
    expect(manifest.spec).toMatchObject({
      image: '127.0.0.1:8081/modules/greeting:0.1.0',
      navSlots: [{ slotId: 'nav.primary', id: 'greeting' }],
      healthChecks: [{ name: 'greeting', path: '/health/greeting', tags: ['informational'] }],
      backgroundJobs: [{ id: 'tick', intervalSeconds: 60 }],
    })
    const compact = JSON.stringify(manifest)
    await writeFile(file, compact)
    const { err } = await author.plat.run(['module', 'manifest', '--dir', 'greeting'])
    expect(err).toMatch(/is valid and up to date\.$/m)
    expect(await readFile(file, 'utf8')).toBe(compact)
    await author.change('src/main.ts', `version: '0.1.0'`, `version: '0.2.0+build.7'`)
    const { metadata, spec } = await author.plat.json(['module', 'manifest', '--dir', 'greeting'])
    expect([metadata.version, spec.image]).toEqual(['0.2.0+build.7', '127.0.0.1:8081/modules/greeting:0.2.0_build.7'])
    expect(await readJson(file)).toEqual({ metadata, spec })
  })

  test.runIf(isLong)('bundles the module’s libraries and no environment variables', async () => {
    await using author = await startAuthor({ PLAT_TOKEN: 'secret' })
    await mkdir(join(author.module, 'node_modules/greetings'), { recursive: true })
    await writeFile(join(author.module, 'node_modules/greetings/index.js'), `module.exports = 'Ahoy'`)
    await writeFile(join(author.module, 'node_modules/greetings/package.json'), '{"name": "greetings"}')
    const header = `import greeting from 'greetings'\nif (process.env.PLAT_TOKEN) throw 'seen'\n`
    await author.change('src/main.ts', /^/, header)
    await author.change('src/main.ts', `'Hello'`, 'greeting')
    await author.plat.prints(['module', 'build', '--dir', 'greeting'])
    expect(await readFile(join(author.module, 'dist/main.mjs'), 'utf8')).toContain('Ahoy')
  })

  test.runIf(isLong)('creates a standalone program', async () => {
    await author.plat.prints(['module', 'build', '--dir', 'greeting'])
    const env = { PLATFORM_MODULE_TOKEN: 'try', PLATFORM_STARTS_ITSELF: '1', PORT: '0' }
    await using program = new Program(process.execPath, ['dist/main.mjs'], { cwd: author.module, env })
    const [, address = ''] = await program.writes(/"address":"(.*?)"/)
    const get = (path: string) => fetch(`http://${address}${path}`, { headers: { 'x-platform-token': 'try' } })
    expect(await (await get('/modules/greeting')).text()).toContain('<h1>Greeting</h1>')
    await waitFor('it is healthy', async () => (await get('/health')).ok)
  })
})

const serving = 'await serve'
const mistakes: [name: string, file: string, before: string | RegExp, after: string, message: RegExp][] = [
  ['it does not call serve', 'src/main.ts', 'await serve(module)', '', /main\.ts must end with: await serve\(module\)/],
  ['it throws', 'src/main.ts', serving, `throw new Error('no luck')\n${serving}`, /Error: no luck\n.*main\.ts:\d+:/],
  ['it crashes while serving', 'src/main.ts', serving, `process.nextTick(() => nothing)\n${serving}`, /nothing is not/],
  ['it exits', 'src/main.ts', serving, `process.exit(3)\n${serving}`, /main\.ts failed before serve\(module\)/],
  [
    'its code is invalid',
    'src/main.ts',
    `${serving}(`,
    `${serving}((`,
    /Failed to bundle.*\n.*main\.ts:\d+:\d+: ERROR/,
  ],
  ['a dependency is missing', 'src/main.ts', /^/, `import 'nowhere'\n`, /main\.ts:1:7: .*"nowhere"/],
  ['its id is invalid', 'src/main.ts', `  id: 'greeting'`, `  id: 'Greeting'`, /"Greeting" is not kebab-case/],
  ['a field is missing', 'module.json', '"author"', '"autor"', /metadata\.author: .*\n.*metadata: .*"autor"/],
  ['its manifest is not JSON', 'module.json', '{', '[', /module\.json is not valid JSON: /],
  ['its manifest is not an object', 'module.json', /^[^]*$/, '[]', /module\.json is not a JSON object/],
]

describe('a module that cannot be built', () => {
  test.for(sampled(mistakes, 5))('exits with 2 and the reason: %s', async ([, file, before, after, message]) => {
    await author.change(file, before, after)
    const { exitCode, out, err } = await author.plat.run(['module', 'build', '--dir', 'greeting'])
    expect({ exitCode, out, err }).toEqual({ exitCode: 2, out: '', err: expect.stringMatching(message) })
    expect(err).not.toMatch(/Unexpected error|node:internal/)
    await expect(stat(join(author.module, 'dist'))).rejects.toThrow('ENOENT')
  })

  test('ends a program that never calls serve', async () => {
    await author.change('src/main.ts', 'await serve(module)', 'await new Promise(() => setInterval(() => {}, 1000))')
    const describing = describeProject(await openProject(author.module), 500)
    await expect(describing).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining('0.5 seconds') })
  })

  test('prints the command to install a missing bundler', async () => {
    const hooks = `import { registerHooks } from 'node:module'
      registerHooks({ resolve: (name, context, next) => next(name === 'esbuild' ? 'no-esbuild' : name, context) })`
    const plat = author.plat.with({ NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hooks)}` })
    const { exitCode, err } = await plat.run(['module', 'build', '--dir', 'greeting'])
    expect([exitCode, err]).toEqual([2, expect.stringMatching(/^The bundler is not installed.*npm ci\n$/)])
  })

  test('explains how to create a module if the folder has none', async () => {
    await using folder = await temporaryFolder()
    const { exitCode, err } = await author.plat.in(folder.path).run(['module', 'build'])
    expect([exitCode, err]).toEqual([2, expect.stringContaining('plat module new <id>')])
  })
})
