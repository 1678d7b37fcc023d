import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Plugin } from 'esbuild'
import { expect, test } from 'vitest'
import { lambdaFlags } from '../simulator/lambda/node-program.ts'
import { bundleAll } from '../../scripts/bundle.ts'
import { root } from '../../scripts/source.ts'
import { bundledFunctions } from '../support/build-cache.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const run = promisify(execFile)

test.each([
  ['auth', /\/ldapts\/|ldap-|external-user|identity-(?:row|provider)\.ts|contract\/src\/setup/],
  ['identity', /\/(?:ldapts|openid-client|oauth4webapi)\//],
  ['modules', /\/tar-stream\/|icons\.ts|packages\/oci\/src\/(?:client|layer)\.ts/],
  ['queue/updates', /\/tar-stream\/|\/client-(?:lambda|ecr)\/|icons\.ts|packages\/worker\/src\/updates\/(?!handlers)/],
  ['schedule/heartbeat', /\/client-(?:lambda|ecr)\/|packages\/worker\/src\/runtimes\/(?:lambda|hosted)/],
])('%s loads rarely used code on demand', async (name, rare) => {
  const { sources, files, initial } = (await bundledFunctions()).get(name)!
  expect(sources.size).toBeGreaterThan(100)
  const held = [...sources].filter(([path, bytes]) => bytes > 0 && rare.test(path))
  expect(held.map(([path]) => path)).toEqual([])
  expect(files.size).toBeGreaterThan(initial.length)
})

/** A function with only late imports: a Node module, platform code and a CommonJS package. */
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
  const asking = `const { handler } = await import(process.argv[1]); console.log(JSON.stringify(await handler()))`
  const args = [...lambdaFlags, '--input-type=module', '-e', asking, join(folder.path, 'index.mjs')]
  const { stdout } = await run(process.execPath, args, { env: {} })
  expect(JSON.parse(stdout)).toEqual([true, true, 'function'])
})
