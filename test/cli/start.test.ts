import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))

test('loads the module tools only for module commands', async () => {
  const hooks = `import { registerHooks } from 'node:module'
    registerHooks({ load: (url, context, next) => (process.stderr.write(url + '\\n'), next(url, context)) })`
  const args = ['--import', `data:text/javascript,${encodeURIComponent(hooks)}`, main]
  for (const line of [['--version'], ['module', '--help'], ['module', 'push', '--help']]) {
    const { stderr } = await run(process.execPath, [...args, ...line])
    const loaded = stderr.split('\n').filter((url) => url.startsWith('file:'))
    expect(loaded).toContainEqual(expect.stringMatching(/commands\/module-author\.ts$/))
    expect(loaded.filter((url) => !/\/packages\/cli\/|\/node_modules\/(commander|openapi-fetch)\//.test(url))).toEqual(
      [],
    )
  }
})
