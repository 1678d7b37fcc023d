import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import type { Plugin } from 'esbuild'
import { beforeAll, expect, test, vi } from 'vitest'
import { functionNames } from '@platform/core/updates/function-names'
import { infrastructureRevision } from '@platform/core/updates/infrastructure'
import type { GatewayHandler } from '@platform/http/response'
import { listFunctionNames } from '../../packages/local/src/function-files.ts'
import { requireBuiltins } from '../../scripts/bundle-builtins.ts'
import { type Bundle, bundle, bundleAll } from '../../scripts/bundle.ts'
import { root } from '../../scripts/source.ts'
import { lambdaFlags } from '../simulator/lambda/node-program.ts'
import { bundledFunctions } from '../support/build-cache.ts'
import { send } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_LOG_LEVEL: 'error' }))

const names = await listFunctionNames(join(root, 'functions'))
/** The maximum size of the code that a function loads before its first response, unpacked and with gzip. */
const limits: readonly [RegExp, kib: number, gzipKib: number][] = [
  // Functions that call only the store and queues.
  [/^(?:bootstrap|queue\/(?:batches|webhooks)(?:-dead-letter)?)$/, 440, 142],
  // Functions that also load parts of the AWS SDK that are shared with the AWS IoT client.
  [/^(?:queue\/events|schedule\/sweep)$/, 475, 153],
  [/./, 560, 185],
]

let bundles: Map<string, Bundle>
beforeAll(async () => {
  bundles = await bundledFunctions()
}, 300_000)

const bundleOf = (name: string): Bundle => {
  const bundle = bundles.get(name)
  if (bundle === undefined) throw new Error(`${name} has no bundle.`)
  return bundle
}

const textsOf = (name: string): string[] =>
  [...bundleOf(name).files.values()].map((content) => Buffer.from(content).toString())

const sourcesOf = (name: string): string[] =>
  [...bundleOf(name).sources].filter(([, bytes]) => bytes > 0).map(([path]) => path)

test.each(names)('the initial bundle of %s is within its size limits', (name) => {
  const { files, initial } = bundleOf(name)
  const [, kib, gzipKib] = limits.find(([pattern]) => pattern.test(name)) ?? [/./, 0, 0]
  const contents = initial.map((file) => files.get(file) ?? Buffer.of())
  const sum = (sizes: readonly number[]) => sizes.reduce((total, size) => total + size, 0)
  expect(contents.every(({ length }) => length > 0)).toBe(true)
  expect(sum(contents.map(({ length }) => length))).toBeLessThan(kib * 1024)
  expect(sum(contents.map((content) => gzipSync(content).length))).toBeLessThan(gzipKib * 1024)
})

test.each(names)('%s contains only environment credentials and no document generator', (name) => {
  const unwantedPaths =
    /^(?!environment:).*credential-provider-(?!env)|nested-clients|zod-openapi|zod\/v4\/locales\/(?!en\.|index)|json-schema-processors|fast-check/
  expect(sourcesOf(name).filter((path) => unwantedPaths.test(path) && !path.startsWith('unneeded:'))).toEqual([])
  // Other credential providers read this variable and this address. Also checks the chunks that are loaded later.
  expect(textsOf(name).filter((text) => /AWS_WEB_IDENTITY_TOKEN_FILE|169\.254\.170\.2\b/.test(text))).toEqual([])
})

test.each(names)('%s does not load fetch initially', (name) => {
  // Importing node:http as an ES module loads fetch.
  expect(textsOf(name).filter((text) => /\bfrom\s*"node:|import\s*\(?["']node:/.test(text))).toEqual([])
})

test('Node modules are required under their own names', () => {
  const text = `import fs,{readFile as a,"stat"as b}from"node:fs";import*as c from"path";import{d}from"./chunk.mjs";"import e from 'fs'";`
  expect(requireBuiltins(text)).toBe(
    `const fs=process.getBuiltinModule("node:fs");const {"readFile":a}=process.getBuiltinModule("node:fs");const {"stat":b}=process.getBuiltinModule("node:fs");const c=process.getBuiltinModule("path");import{d}from"./chunk.mjs";"import e from 'fs'";`,
  )
})

test('late imports of Node modules have a default export and are not ES modules', () => {
  const text = `a=()=>import("node:http");b=()=>import('fs');c=()=>import("./late.mjs");d=()=>import(x);"import('fs')";`
  const lateImports = ['node:http', 'fs'].map(
    (name) =>
      `Promise.resolve({__proto__:process.getBuiltinModule("${name}"),default:process.getBuiltinModule("${name}")})`,
  )
  expect(requireBuiltins(text)).toBe(
    `a=()=>${lateImports[0]};b=()=>${lateImports[1]};c=()=>import("./late.mjs");d=()=>import(x);"import('fs')";`,
  )
})

test('bundles contain the revision and the function names of the contract', () => {
  expect(textsOf('schedule/updates').join('\n')).toContain(infrastructureRevision())
  const worker = textsOf('queue/updates').join('\n')
  expect(functionNames.filter((name) => !worker.includes(`"${name}"`))).toEqual([])
})

test('only functions that set passwords contain the list of common ones', () => {
  expect(names.filter((name) => textsOf(name).some((text) => text.includes('"trustno1"')))).toEqual(['setup', 'users'])
})

test('a bundle serves without other files', async () => {
  const { path } = await bundle('health')
  const { handler }: { handler: GatewayHandler } = await import(path)
  expect(await send(handler, { target: '/health/live' })).toMatchObject({ status: 200, json: { status: 'ok' } })
})

test.each([
  ['auth', /\/ldapts\/|ldap-|external-user|identity-(?:row|provider)\.ts|contract\/src\/setup/],
  ['identity', /\/(?:ldapts|openid-client|oauth4webapi)\//],
  ['modules', /\/tar-stream\/|icons\.ts|packages\/oci\/src\/(?:client|layer)\.ts/],
  ['queue/installs', /\/tar-stream\/|\/client-(?:lambda|ecr)\/|icons\.ts|packages\/worker\/src\/updates\//],
  ['queue/updates', /\/client-lambda\/|packages\/worker\/src\/updates\/(?!handlers)/],
  ['schedule/heartbeat', /\/client-(?:lambda|ecr)\/|packages\/worker\/src\/runtimes\/(?:lambda|hosted)/],
])('%s loads rarely used code on demand', (name, rare) => {
  const { sources, files, initial } = bundleOf(name)
  expect(sources.size).toBeGreaterThan(100)
  expect(sourcesOf(name).filter((path) => rare.test(path))).toEqual([])
  expect(files.size).toBeGreaterThan(initial.length)
})

const lateFunction: Plugin = {
  name: 'late-function',
  setup: (builder) =>
    builder.onLoad({ filter: /\/functions\/health\.ts$/ }, () => ({
      resolveDir: join(root, 'functions'),
      contents: `export const handler = async () => {
        const [http, { default: whole }, { layerEntries }] = await Promise.all([
          import('node:http'), import('node:http'), import('@platform/oci/layer'),
        ])
        return [http.request === whole.request, http.default === whole, typeof layerEntries]
      }`,
    })),
}

test('late imports work where Node cannot require ES modules, as on Lambda', async () => {
  const { files, initial = [] } = (await bundleAll(['health'], undefined, [lateFunction])).get('health') ?? {}
  expect(files?.size).toBeGreaterThan(initial.length)
  await using folder = await temporaryFolder()
  for (const [name, content] of files ?? []) await writeFile(join(folder.path, name), content)
  const program = `const { handler } = await import(process.argv[1]); console.log(JSON.stringify(await handler()))`
  const args = [...lambdaFlags, '--input-type=module', '-e', program, join(folder.path, 'index.mjs')]
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: {} })
  expect(JSON.parse(stdout)).toEqual([true, true, 'function'])
})
