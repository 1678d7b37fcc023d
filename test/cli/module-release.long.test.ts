import { startRegistry } from '@platform/local/registry/server'
import { registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { all } from '../oci/support.ts'
import type { Plat } from '../support/plat.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type Author, startAuthor } from './support/author.ts'

const password = 'correct horse battery'

let registry: Awaited<ReturnType<typeof startRegistry>>
let author: Author
let plat: Plat
let digest: string
const resources = new AsyncDisposableStack()
const image = (tag: string) => `${registry.host}/modules/greeting:${tag}`
const verify = async (tag: string, ...keys: string[]) => {
  const options = keys.flatMap((key) => ['--key', `${key}.pub`])
  const { exitCode, out } = await plat.run(['module', 'verify', image(tag), ...options, '--json'])
  return { exitCode, ...JSON.parse(out) }
}

const tagsIn = (repository: string): Promise<string[]> => {
  const credentials = async () => ({ username: 'platform', password })
  return all(registryClient(registry.host, { transport: plainTransport, credentials }).tags(repository))
}

beforeAll(async () => {
  const { path: folder } = resources.use(await temporaryFolder())
  registry = await startRegistry({ folder, port: 0, password, log: () => undefined })
  resources.defer(() => registry.close(0))
  const settings = { PLAT_REGISTRY_USERNAME: 'platform', PLAT_REGISTRY_PASSWORD: password }
  author = resources.use(await startAuthor(settings, `${registry.host}/modules/greeting`))
  plat = author.plat
  for (const name of ['ada', 'eve']) await plat.prints(['module', 'key', name])
  digest = (await plat.json(['module', 'build', '--dir', 'greeting'])).digest
})
afterAll(() => resources.disposeAsync())

test('a module that is pushed without a key is not verified', async () => {
  const pushedImage = await plat.json(['module', 'push', '--dir', 'greeting'])
  expect(pushedImage).toEqual({ image: image('0.1.0'), digest, isSigned: false })
  expect((await tagsIn('modules/greeting')).toSorted()).toEqual(['0.1.0', 'latest'])
  expect(await verify('0.1.0', 'ada')).toMatchObject({ exitCode: 1, isVerified: false, problem: 'unsigned' })
  const { exitCode, out, err } = await plat.run(['module', 'verify', image('0.1.0'), '--key', 'ada.pub'])
  expect([exitCode, out]).toEqual([1, ''])
  expect(err).toBe(`${image('0.1.0')} is not verified: No signature of ${digest} is in modules/greeting.\n`)
})

test('a module that is pushed with a key is verified with that key only', async () => {
  const pushedImage = await plat.json(['module', 'push', '--dir', 'greeting', '--key', 'ada.key'])
  expect(pushedImage).toMatchObject({ isSigned: true })
  expect(await verify('latest', 'eve')).toMatchObject({ exitCode: 1, problem: 'unknown_key' })
  const verification = { exitCode: 0, by: 'ada.pub', digest, layout: 'referrer' }
  expect(await verify('latest', 'eve', 'ada')).toMatchObject(verification)
})

test('a module can be signed in the legacy layout', async () => {
  const signCommand = ['module', 'sign', image('0.1.0'), '--key', 'eve.key', '--legacy']
  expect(await plat.json(signCommand)).toEqual({ image: image('0.1.0'), digest })
  expect(await verify('0.1.0', 'eve')).toMatchObject({ exitCode: 0, by: 'eve.pub', layout: 'tag' })
})

test('a module is not verified after its tag was moved to another image', async () => {
  await author.change('src/main.ts', 'The module is running', 'Here I was')
  await plat.prints(['module', 'build', '--dir', 'greeting'])
  await plat.prints(['module', 'push', '--dir', 'greeting'])
  expect(await verify('0.1.0', 'ada', 'eve')).toMatchObject({ exitCode: 1, problem: 'unsigned' })
})

test('a module that changed after its build is not pushed', async () => {
  await author.change('src/main.ts', `version: '0.1.0'`, `version: '0.2.0'`)
  for (const make of [async () => {}, () => author.change('src/main.ts', `'Hello'`, `'Hi'`)]) {
    await make()
    const { exitCode, err } = await plat.run(['module', 'push', '--dir', 'greeting'])
    expect(exitCode).toBe(2)
    expect(err).toMatch(/does not match the current code.* plat module build\n$/)
  }
  expect(await tagsIn('modules/greeting')).not.toContain('0.2.0')
})

test('a push with a wrong registry password exits with 1 and advice', async () => {
  await plat.prints(['module', 'build', '--dir', 'greeting'])
  const wrongPassword = plat.with({ PLAT_REGISTRY_PASSWORD: 'wrong' })
  const { exitCode, err } = await wrongPassword.run(['module', 'push', '--dir', 'greeting'])
  expect([exitCode, err]).toEqual([1, expect.stringMatching(/PLAT_REGISTRY_USERNAME .* docker login\n$/)])
  expect(err).not.toContain('wrong')
})
