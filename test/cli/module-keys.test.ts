import { chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startServer, type TestServer } from '../support/http-server.ts'
import { sampled } from '../support/long.ts'
import { type Author, startAuthor } from './support/author.ts'

let author: Author

beforeAll(async () => {
  author = await startAuthor()
  await author.plat.prints(['module', 'key', 'ada'])
})
afterAll(() => author[Symbol.asyncDispose]())

describe('a key', () => {
  test('is readable only by its owner and never replaced', async () => {
    const file = join(author.folder, 'ada.key')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const textBefore = await readFile(file, 'utf8')
    expect(await author.plat.run(['module', 'key', 'ada.key'])).toMatchObject({ exitCode: 2 })
    expect(await readFile(file, 'utf8')).toBe(textBefore)
  })

  const encryptedKey =
    '-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nYQ==\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n'

  test.for(
    sampled([
      ['sign', 'nowhere.key', undefined, 'plat module key'],
      ['sign', 'text.key', 'no key', 'PEM'],
      ['sign', 'ada.pub', undefined, 'It is a public key'],
      ['sign', 'cosign.key', encryptedKey, 'cosign'],
      ['verify', 'ada.key', undefined, 'It is a private key'],
      ['verify', 'text.pub', 'no key', 'PEM'],
    ] as const),
  )('that is unsuitable for module %s is rejected before any request: %s', async ([verb, name, text, message]) => {
    if (text !== undefined) await writeFile(join(author.folder, name), text)
    // Port 9 is closed: a request would fail.
    const { exitCode, err } = await author.plat.run(['module', verb, '127.0.0.1:9/modules/greeting:1', '--key', name])
    expect([exitCode, err]).toEqual([2, expect.stringContaining(message)])
    expect(err).toContain(name)
  })
})

describe('a registry is called', () => {
  const environment = { PLAT_REGISTRY_USERNAME: 'environment', PLAT_REGISTRY_PASSWORD: 'one' }
  let server: TestServer

  beforeEach(async () => {
    const headers = { 'www-authenticate': 'Basic realm="tests"' }
    server = await startServer(() => ({ status: 401, headers }))
  })
  afterEach(async () => {
    await server[Symbol.asyncDispose]()
    for (const each of ['.docker', 'data']) await rm(join(author.folder, each), { recursive: true, force: true })
  })

  const credentials = () =>
    server.requests.flatMap(({ headers: { authorization } }) =>
      authorization === undefined ? [] : Buffer.from(authorization.replace('Basic ', ''), 'base64').toString(),
    )

  const call = (settings: Record<string, string> = {}) =>
    author.plat.with(settings).run(['module', 'verify', `${server.host}/modules/greeting:1`, '--key', 'ada.pub'])

  test('without credentials exits with 1 and advice', async () => {
    const { exitCode, err } = await call()
    expect([exitCode, err]).toEqual([1, expect.stringContaining('Set PLAT_REGISTRY_USERNAME')])
    expect([server.requests.length > 0, credentials()]).toEqual([true, []])
  })

  test('with the owner’s password for the platform’s own registry, despite other credentials', async () => {
    const registry = { host: server.host, username: 'platform', password: 'own' }
    await store('data/runtime.json', { registry })
    await call(environment)
    expect(credentials()).toEqual(['platform:own'])
    await author.plat.prints(['module', 'new', 'other'])
    const manifest = await readFile(join(author.folder, 'other/module.json'), 'utf8')
    expect(manifest).toContain(`"${server.host}/modules/other:0.1.0"`)
  })

  test.for([
    ['of the environment before those of docker', environment, 'environment:one'],
    ['of docker login', {}, 'docker:t:wo'],
  ] as const)('with the credentials %s', async ([, settings, expected]) => {
    const auth = Buffer.from('docker:t:wo').toString('base64')
    await store('.docker/config.json', { auths: { [server.host]: { auth } } })
    await call(settings)
    expect(credentials()).toEqual([expected])
  })

  test('with docker’s credential helper, and without credentials if it is missing', async () => {
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
    expect(credentials()).toEqual([`get:${server.host}`])
  })

  test('never with the password of another registry, such as that of the base image', async () => {
    const build = ['module', 'build', '--dir', 'greeting', '--from', `${server.host}/library/node:24`]
    const { exitCode, err } = await author.plat.with(environment).run(build)
    expect([exitCode, err]).toEqual([1, expect.stringContaining('requires credentials')])
    expect([server.requests.length > 0, credentials()]).toEqual([true, []])
  })
})

async function store(file: string, content: object): Promise<void> {
  const path = join(author.folder, file)
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, JSON.stringify(content))
}
