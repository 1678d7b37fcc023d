import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Plat } from '../support/plat.ts'
import { type Author, startAuthor } from './support/author.ts'
import { startEnvironment, type Environment } from './support/environment.ts'

/** The tests run in order, on one platform. */

let environment: Environment
let author: Author
let plat: Plat
let registry: string

beforeAll(async () => {
  environment = await startEnvironment()
  const dataDir = await environment.platform.command('printf %s "$PLAT_DATA_DIR"')
  registry = JSON.parse(await readFile(join(dataDir, 'runtime.json'), 'utf8')).registry.host
  plat = environment.plat.with({ PLAT_DATA_DIR: dataDir })
  author = await startAuthor({ PLAT_DATA_DIR: dataDir })
})
afterAll(async () => {
  await author[Symbol.asyncDispose]()
  await environment[Symbol.asyncDispose]()
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
  const installation = await plat.run(['module', 'install', 'hello', '--version', '1.0.0'])
  expect(installation).toMatchObject({ exitCode: 0, out: 'ModuleInstall Completed: Version 1.0.0 runs.\n' })
  const steps = ['verify', 'deploy', 'configure', 'start', 'probe', 'publish'].map((step) => `${step}: Completed\n`)
  const advice = 'hello can receive platform.cluster.status_changed. To allow it: plat module enable hello\n'
  expect(installation.err).toBe(steps.join('') + advice)
  const events = ['platform.cluster.status_changed']
  expect(await plat.json(['module', 'enable', 'hello', '--events', events.join()])).toMatchObject({
    enabled: true,
    events,
  })
  expect(await plat.json(['module', 'disable', 'hello'])).toMatchObject({ enabled: false })
  expect(await plat.prints(['module', 'list'])).toMatch(/^hello +1\.0\.0 +Running +Healthy +yes +\/api\/hello +\S/m)
  expect(await plat.prints(['module', 'get', 'hello'])).toMatch(/^verifiedBy +this platform$/m)
  expect(await plat.prints(['module', 'catalog', '--installed'])).toMatch(/^hello +1\.0\.0 +yes +1\.0\.0 +- /m)

  const reinstall = await plat.run(['module', 'install', 'hello'])
  expect([reinstall.exitCode, reinstall.err]).toEqual([1, expect.stringContaining('(module_already_installed)')])
  const otherRun = await plat.run(['module', 'install', 'hello', '--version', '9.9.9'])
  expect([otherRun.exitCode, otherRun.err]).toEqual([1, expect.stringContaining('(version_not_available)')])

  const uninstallation = await plat.run(['module', 'uninstall', 'hello'])
  expect(uninstallation).toMatchObject({ exitCode: 0, out: 'ModuleUninstall Completed: The module is uninstalled.\n' })
  expect(await plat.run(['module', 'list'])).toMatchObject({ exitCode: 0, out: '', err: 'No items.\n' })
  expect(await plat.run(['module', 'get', 'hello'])).toMatchObject({ exitCode: 1, out: '' })
})

test('lists an unsigned module after a scan with the reason why it cannot be installed', async () => {
  const image = await release('0.1.1')
  expect(image).toBe(`${registry}/modules/greeting:0.1.1`)
  expect(await plat.json(['module', 'scan'])).toMatchObject({ totalCount: 2, problems: [] })
  const { out, err } = await plat.run(['module', 'catalog'])
  expect(out).toMatch(/^greeting +0\.1\.1 +no +- /m)
  expect(err).toMatch(/^greeting is not verified: No signature of sha256:\w+ is in modules\/greeting\.$/m)
  for (const target of ['greeting', image]) {
    const refusal = await plat.run(['module', 'install', target])
    expect([refusal.exitCode, refusal.err]).toEqual([1, expect.stringContaining('(module_signature_unverified)')])
  }
})

test('installs and upgrades an unsigned image if allowed, and keeps the old version if an upgrade fails', async () => {
  await environment.platform.stop()
  await environment.platform.restart({ PLAT_ALLOW_UNVERIFIED_MODULES: 'true' })
  const acceptedInstallation = await plat.json(['module', 'install', `${registry}/modules/greeting:0.1.1`, '--no-wait'])
  expect(acceptedInstallation).toMatchObject({
    moduleId: 'greeting',
    version: '0.1.1',
    status: 'Installing',
    verified: false,
  })
  expect((await plat.run(['job', 'wait', acceptedInstallation.jobId])).exitCode).toBe(0)

  expect((await plat.run(['module', 'install', await release('0.2.0')])).exitCode).toBe(0)

  await author.change(
    'src/main.ts',
    '  routes(app',
    `  configure: () => Promise.reject(new Error('no luck')),\n  routes(app`,
  )
  const failure = await plat.run(['module', 'install', await release('0.3.0')])
  expect([failure.exitCode, failure.out]).toEqual([1, expect.stringMatching(/^ModuleInstall Failed: .*no luck/)])
  expect(failure.err).toContain('configure: Failed')
  expect(await plat.json(['module', 'get', 'greeting'])).toMatchObject({ version: '0.2.0', state: 'Running' })
  const { status, result } = await jsonOf(['module', 'install', `${registry}/modules/greeting:0.3.0`])
  expect([status, result.output]).toEqual(['Failed', expect.stringContaining('no luck')])
})

const jsonOf = async (args: readonly string[]) => JSON.parse((await plat.run([...args, '--json'])).out)
