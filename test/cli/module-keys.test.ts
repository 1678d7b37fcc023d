import { chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startServer, type TestServer } from '../support/http-server.ts'
import { type Author, startAuthor } from './support/author.ts'

/** Whom authors are at the command line: the keys that they sign with, and who they are to a registry. */

let author: Author

beforeAll(async () => {
  author = await startAuthor()
  await author.plat.prints(['module', 'key', 'ada'])
})
afterAll(() => author[Symbol.asyncDispose]())

describe('a key', () => {
  test('is readable by its owner alone, and never replaced', async () => {
    const file = join(author.folder, 'ada.key')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const before = await readFile(file, 'utf8')
    expect(await author.plat.run(['module', 'key', 'ada.key'])).toMatchObject({ exitCode: 2 })
    expect(await readFile(file, 'utf8')).toBe(before)
  })

  test('of which one half is there already is not made by half', async () => {
    await writeFile(join(author.folder, 'half.pub'), 'mine')
    expect(await author.plat.run(['module', 'key', 'half'])).toMatchObject({ exitCode: 2 })
    await expect(stat(join(author.folder, 'half.key'))).rejects.toThrow('ENOENT')
  })

  const encrypted =
    '-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nYQ==\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n'

  test.for([
    ['sign', 'nowhere.key', undefined, 'plat module key'],
    ['sign', 'text.key', 'no key', 'PEM'],
    ['sign', 'ada.pub', undefined, 'It is a public key'],
    ['sign', 'cosign.key', encrypted, 'cosign'],
    ['verify', 'ada.key', undefined, 'It is a private key'],
    ['verify', 'text.pub', 'no key', 'PEM'],
  ] as const)(
    'that is none to %s with, %s, is said to be so before anything is asked',
    async ([verb, name, text, said]) => {
      if (text !== undefined) await writeFile(join(author.folder, name), text)
      // Nobody listens there: whoever asked would hear so.
      const { exitCode, err } = await author.plat.run(['module', verb, '127.0.0.1:9/modules/greeting:1', '--key', name])
      expect([exitCode, err]).toEqual([2, expect.stringContaining(said)])
      expect(err).toContain(name)
    },
  )

  test('does not help where nobody answers: 4', async () => {
    const { exitCode, err } = await author.plat.run([
      'module',
      'sign',
      '127.0.0.1:9/modules/greeting:1',
      '--key',
      'ada.key',
    ])
    expect([exitCode, err]).toEqual([4, expect.stringContaining('127.0.0.1:9')])
  })
})

describe('a registry is called', () => {
  const environment = { PLAT_REGISTRY_USERNAME: 'environment', PLAT_REGISTRY_PASSWORD: 'one' }
  /** Asks everybody for a password. */
  let server: TestServer

  beforeEach(async () => {
    const headers = { 'www-authenticate': 'Basic realm="tests"' }
    server = await startServer(() => ({ status: 401, headers }))
  })
  afterEach(async () => {
    await server[Symbol.asyncDispose]()
    for (const each of ['.docker', 'data']) await rm(join(author.folder, each), { recursive: true, force: true })
  })

  /** What it was given. */
  const given = () =>
    server.requests.flatMap(({ headers: { authorization } }) =>
      authorization === undefined ? [] : Buffer.from(authorization.replace('Basic ', ''), 'base64').toString(),
    )

  const call = (settings: Record<string, string> = {}) =>
    author.plat.with(settings).run(['module', 'verify', `${server.host}/modules/greeting:1`, '--key', 'ada.pub'])

  test('by nobody where nobody has said a name: 1, and what to do', async () => {
    const { exitCode, err } = await call()
    expect([exitCode, err]).toEqual([1, expect.stringContaining('Set PLAT_REGISTRY_USERNAME')])
    expect([server.requests.length > 0, given()]).toEqual([true, []])
  })

  test('by the owner of the platform that has it, whoever else is named', async () => {
    const registry = { host: server.host, username: 'platform', password: 'own' }
    await store('data/runtime.json', { registry })
    await call(environment)
    expect(given()).toEqual(['platform:own'])
    await author.plat.prints(['module', 'new', 'other'])
    const manifest = await readFile(join(author.folder, 'other/module.json'), 'utf8')
    expect(manifest).toContain(`"${server.host}/modules/other:0.1.0"`)
  })

  test('by whom the environment names, before docker’s own', async () => {
    await store('.docker/config.json', { auths: { [server.host]: { auth: pair('docker', 'two') } } })
    await call(environment)
    expect(given()).toEqual(['environment:one'])
  })

  test('by half a name not at all', async () => {
    expect(await call({ PLAT_REGISTRY_USERNAME: 'environment' })).toMatchObject({ exitCode: 2 })
    expect(given()).toEqual([])
  })

  test('by whom docker has signed in', async () => {
    await store('.docker/config.json', { auths: { [server.host]: { auth: pair('docker', 't:wo') } } })
    await call()
    expect(given()).toEqual(['docker:t:wo'])
  })

  test('by whom docker’s helper knows; one that is missing knows nobody', async () => {
    const helper = join(author.folder, 'tools/docker-credential-tests')
    await mkdir(join(helper, '..'))
    await writeFile(
      helper,
      `#!/bin/sh\nread -r server; echo "{\\"Username\\": \\"$1\\", \\"Secret\\": \\"$server\\"}"\n`,
    )
    await chmod(helper, 0o755)
    for (const name of ['missing', 'tests']) {
      await store('.docker/config.json', { credHelpers: { [server.host]: name }, auths: { [server.host]: {} } })
      const PATH = [join(helper, '..'), process.env['PATH']].join(delimiter)
      expect(await call({ PATH })).toMatchObject({ exitCode: 1 })
    }
    expect(given()).toEqual([`get:${server.host}`])
  })

  test('with the password of another registry never: not the one that has the base of an image', async () => {
    const build = ['module', 'build', '--dir', 'greeting', '--from', `${server.host}/library/node:24`]
    const { exitCode, err } = await author.plat.with(environment).run(build)
    expect([exitCode, err]).toEqual([1, expect.stringContaining('wants credentials')])
    expect([server.requests.length > 0, given()]).toEqual([true, []])
  })
})

const pair = (username: string, password: string): string => Buffer.from(`${username}:${password}`).toString('base64')

async function store(file: string, content: object): Promise<void> {
  const path = join(author.folder, file)
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, JSON.stringify(content))
}
