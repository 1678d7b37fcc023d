import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Plat } from '../support/plat.ts'
import { type Author, startAuthor } from './support/author.ts'
import { startProxy } from './support/proxy.ts'
import { password, startWorkplace, type Workplace } from './support/workplace.ts'

/** The tests depend on each other's order. */

let workplace: Workplace
let author: Author
let plat: Plat
let registry: string

beforeAll(async () => {
  workplace = await startWorkplace()
  const dataDir = await workplace.platform.command('printf %s "$PLAT_DATA_DIR"')
  registry = JSON.parse(await readFile(join(dataDir, 'runtime.json'), 'utf8')).registry.host
  plat = workplace.plat.with({ PLAT_DATA_DIR: dataDir })
  author = await startAuthor({ PLAT_DATA_DIR: dataDir })
})
afterAll(async () => {
  await author[Symbol.asyncDispose]()
  await workplace[Symbol.asyncDispose]()
})

async function release(version: string): Promise<string> {
  await author.change('src/main.ts', /  version: '.*?'/, `  version: '${version}'`)
  await author.plat.prints(['module', 'build', '--dir', 'greeting'])
  return (await author.plat.json(['module', 'push', '--dir', 'greeting'])).image
}

test('installs, shows and uninstalls a catalog module by version', async () => {
  expect(await plat.prints(['module', 'catalog', '--verified', '--search', 'greets reference'])).toMatch(
    /^ID +VERSION +VERIFIED +INSTALLED +UPDATE +DESCRIPTION\nhello +1\.0\.0 +yes +- +- +Reference module.*\n$/,
  )
  const installed = await plat.run(['module', 'install', 'hello', '--version', '1.0.0'])
  expect(installed).toMatchObject({ exitCode: 0, out: 'ModuleInstall Completed: Version 1.0.0 runs.\n' })
  expect(installed.err).toBe(
    ['verify', 'deploy', 'configure', 'start', 'probe', 'publish'].map((step) => `${step}: Completed\n`).join(''),
  )
  expect(await plat.prints(['module', 'list'])).toMatch(/^hello +1\.0\.0 +Running +Healthy +yes +\/api\/hello +\S/m)
  expect(await plat.prints(['module', 'get', 'hello'])).toMatch(/^verifiedBy +this platform$/m)
  expect(await plat.prints(['module', 'catalog', '--installed'])).toMatch(/^hello +1\.0\.0 +yes +1\.0\.0 +- /m)

  const again = await plat.run(['module', 'install', 'hello'])
  expect([again.exitCode, again.err]).toEqual([1, expect.stringContaining('(module_already_installed)')])
  const other = await plat.run(['module', 'install', 'hello', '--version', '9.9.9'])
  expect([other.exitCode, other.err]).toEqual([1, expect.stringContaining('(version_not_available)')])

  const uninstalled = await plat.run(['module', 'uninstall', 'hello'])
  expect(uninstalled).toMatchObject({ exitCode: 0, out: 'ModuleUninstall Completed: It is gone.\n' })
  expect(await plat.run(['module', 'list'])).toMatchObject({ exitCode: 0, out: '', err: 'No items.\n' })
  expect(await plat.run(['module', 'get', 'hello'])).toMatchObject({ exitCode: 1, out: '' })
})

test('completes an uninstallation if its first response is lost', async () => {
  await plat.run(['module', 'install', 'hello', '--version', '1.0.0'])
  await using proxy = await startProxy(workplace.platform.url)
  const away = plat.with({ PLAT_SERVER: proxy.url, XDG_CONFIG_HOME: join(workplace.folder, 'away') })
  await away.prints(['login', '--username', 'ada', '--password-stdin'], `${password}\n`)
  proxy.spoil('DELETE /api/v1/modules/hello', 'lose the answer')
  const uninstalled = await away.run(['module', 'uninstall', 'hello'])
  expect(uninstalled.exitCode).toBe(0)
  // The operation runs or has ended before the retry.
  expect(uninstalled.out).toMatch(/^(ModuleUninstall Completed: It is gone\.|moduleId +hello\nstatus +Uninstalled)\n$/)
  expect(await plat.run(['module', 'list'])).toMatchObject({ exitCode: 0, err: 'No items.\n' })
})

test('lists an unsigned module after a scan with the reason why it cannot be installed', async () => {
  const image = await release('0.1.1')
  expect(image).toBe(`${registry}/modules/greeting:0.1.1`)
  expect(await plat.json(['module', 'scan'])).toMatchObject({ totalCount: 2, problems: [] })
  const { out, err } = await plat.run(['module', 'catalog'])
  expect(out).toMatch(/^greeting +0\.1\.1 +no +- /m)
  expect(err).toMatch(/^greeting is not verified: No signature of sha256:\w+ is in modules\/greeting\.$/m)
  for (const what of ['greeting', image]) {
    const refused = await plat.run(['module', 'install', what])
    expect([refused.exitCode, refused.err]).toEqual([1, expect.stringContaining('(module_signature_unverified)')])
  }
})

test('installs and upgrades an unsigned image if allowed, and keeps the old version if an upgrade fails', async () => {
  await workplace.platform.stop()
  await workplace.platform.restart({ PLAT_ALLOW_UNVERIFIED_MODULES: 'true' })
  const accepted = await plat.json(['module', 'install', `${registry}/modules/greeting:0.1.1`, '--no-wait'])
  expect(accepted).toMatchObject({ moduleId: 'greeting', version: '0.1.1', status: 'Installing', verified: false })
  expect((await plat.run(['job', 'wait', accepted.jobId])).exitCode).toBe(0)

  expect((await plat.run(['module', 'install', await release('0.2.0')])).exitCode).toBe(0)

  await author.change(
    'src/main.ts',
    '  routes(app',
    `  configure: () => Promise.reject(new Error('no luck')),\n  routes(app`,
  )
  const failed = await plat.run(['module', 'install', await release('0.3.0')])
  expect([failed.exitCode, failed.out]).toEqual([1, expect.stringMatching(/^ModuleInstall Failed: .*no luck/)])
  expect(failed.err).toContain('configure: Failed')
  expect(await plat.json(['module', 'get', 'greeting'])).toMatchObject({ version: '0.2.0', state: 'Running' })
  const { status, result } = await jsonOf(['module', 'install', `${registry}/modules/greeting:0.3.0`])
  expect([status, result.output]).toEqual(['Failed', expect.stringContaining('no luck')])
})

const jsonOf = async (args: readonly string[]) => JSON.parse((await plat.run([...args, '--json'])).out)

test.for([
  'module install',
  'module install hello --manifest https://example.com/module.json',
  'module install example.com/modules/hello --version 1.0.0',
  'module uninstall',
  'module verify example.com/modules/hello',
  'module build --with-node --from example.com/node',
])('plat %s is wrong use: 2, nothing on standard output', async (line) => {
  const { exitCode, out, err } = await plat.run(line.split(' '))
  expect([exitCode, out]).toEqual([2, ''])
  expect(err).not.toMatch(/^$|Unexpected/)
})
