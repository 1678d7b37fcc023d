import { startRegistry } from '@platform/local/registry/server'
import { registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { all } from '../oci/support.ts'
import { passwordGuard, startDockerRegistry } from '../support/docker-registry.ts'
import { missingPrograms, outputOf } from '../support/installed-programs.ts'
import type { Plat } from '../support/plat.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type Author, startAuthor } from './support/author.ts'

const password = 'correct horse battery'

/** A registry with its write credentials. */
interface OpenRegistry extends AsyncDisposable {
  host: string
  username: string
}

async function embeddedRegistry(): Promise<OpenRegistry> {
  const folder = await temporaryFolder()
  const registry = await startRegistry({ folder: folder.path, port: 0, password, log: () => undefined })
  return {
    host: registry.host,
    username: 'platform',
    async [Symbol.asyncDispose]() {
      await registry.close(0)
      await folder[Symbol.asyncDispose]()
    },
  }
}

const dockerRegistry = async (): Promise<OpenRegistry> => {
  const registry = await startDockerRegistry(passwordGuard)
  return { ...registry, username: 'ada', [Symbol.asyncDispose]: () => registry[Symbol.asyncDispose]() }
}

const environmentOf = ({ username }: OpenRegistry) => ({
  PLAT_REGISTRY_USERNAME: username,
  PLAT_REGISTRY_PASSWORD: password,
})

const clientOf = ({ host, username }: OpenRegistry) =>
  registryClient(host, { transport: plainTransport, credentials: async () => ({ username, password }) })

const tagsIn = async (registry: OpenRegistry, repository: string): Promise<string[]> =>
  all(clientOf(registry).tags(repository)).catch(() => [])

const kinds = [
  ['the platform’s own registry', embeddedRegistry, missingPrograms()],
  ['docker-registry', dockerRegistry, missingPrograms('docker-registry')],
] as const

describe.for(kinds)('with %s', ([, open, lacking]) => {
  describe.skipIf(lacking !== '')(`a module${lacking}`, () => {
    let registry: OpenRegistry
    let author: Author
    let plat: Plat
    let digest: string
    const resources = new AsyncDisposableStack()
    const image = (tag: string) => `${registry.host}/modules/greeting:${tag}`
    const verdict = async (tag: string, ...keys: string[]) => {
      const { exitCode, out } = await plat.run([
        'module',
        'verify',
        image(tag),
        ...keys.flatMap((key) => ['--key', `${key}.pub`]),
        '--json',
      ])
      return { exitCode, ...JSON.parse(out) }
    }

    beforeAll(async () => {
      registry = resources.use(await open())
      author = resources.use(await startAuthor(environmentOf(registry), `${registry.host}/modules/greeting`))
      plat = author.plat
      for (const name of ['ada', 'eve']) await plat.prints(['module', 'key', name])
      digest = (await plat.json(['module', 'build', '--dir', 'greeting'])).digest
    })
    afterAll(() => resources.disposeAsync())

    test('pushed without a key is reported as not verified', async () => {
      const pushed = await plat.json(['module', 'push', '--dir', 'greeting'])
      expect(pushed).toEqual({ image: image('0.1.0'), digest, isSigned: false })
      expect((await tagsIn(registry, 'modules/greeting')).toSorted()).toEqual(['0.1.0', 'latest'])
      expect(await verdict('0.1.0', 'ada')).toMatchObject({ exitCode: 1, isVerified: false, problem: 'unsigned' })
      const { exitCode, out, err } = await plat.run(['module', 'verify', image('0.1.0'), '--key', 'ada.pub'])
      expect([exitCode, out]).toEqual([1, ''])
      expect(err).toBe(`${image('0.1.0')} is not verified: No signature of ${digest} is in modules/greeting.\n`)
    })

    test('pushed with a key is verified with that key only', async () => {
      expect(await plat.json(['module', 'push', '--dir', 'greeting', '--key', 'ada.key'])).toMatchObject({
        isSigned: true,
      })
      expect(await verdict('latest', 'eve')).toMatchObject({ exitCode: 1, problem: 'unknown_key' })
      expect(await verdict('latest', 'eve', 'ada')).toMatchObject({
        exitCode: 0,
        by: 'ada.pub',
        digest,
        layout: 'referrer',
      })
    })

    test('can be signed in the legacy layout', async () => {
      const signed = ['module', 'sign', image('0.1.0'), '--key', 'eve.key', '--legacy']
      expect(await plat.json(signed)).toEqual({ image: image('0.1.0'), digest })
      expect(await verdict('0.1.0', 'eve')).toMatchObject({ exitCode: 0, by: 'eve.pub', layout: 'tag' })
    })

    test('is not verified after its tag moved to another image', async () => {
      await author.change('src/main.ts', 'Here I am', 'Here I was')
      await plat.prints(['module', 'build', '--dir', 'greeting'])
      await plat.prints(['module', 'push', '--dir', 'greeting'])
      expect(await verdict('0.1.0', 'ada', 'eve')).toMatchObject({ exitCode: 1, problem: 'unsigned' })
    })

    test('that changed after its build is not pushed', async () => {
      await author.change('src/main.ts', `version: '0.1.0'`, `version: '0.2.0'`)
      for (const make of [async () => {}, () => author.change('src/main.ts', `'Hello'`, `'Hi'`)]) {
        await make()
        const { exitCode, err } = await plat.run(['module', 'push', '--dir', 'greeting'])
        expect([exitCode, err]).toEqual([
          2,
          expect.stringMatching(/does not match the current code.* plat module build\n$/),
        ])
      }
      expect(await tagsIn(registry, 'modules/greeting')).not.toContain('0.2.0')
    })

    test('is pushed to the given repository with its version as tag', async () => {
      await plat.prints(['module', 'build', '--dir', 'greeting'])
      const to = `${registry.host}/team/other`
      expect((await plat.run(['module', 'push', '--dir', 'greeting', '--to', `${to}:1`])).exitCode).toBe(2)
      await plat.prints(['module', 'push', '--dir', 'greeting', '--to', to])
      expect(await tagsIn(registry, 'team/other')).toContain('0.2.0')
    })

    test('that does not exist can be neither signed nor verified', async () => {
      for (const verb of ['sign', 'verify']) {
        const { exitCode, err } = await plat.run([
          'module',
          verb,
          image('9.9.9'),
          '--key',
          verb === 'sign' ? 'ada.key' : 'ada.pub',
        ])
        expect([exitCode, err]).toEqual([1, `There is no image ${image('9.9.9')}.\n`])
      }
    })

    test('rejected by a registry for a wrong password exits with 1 and advice', async () => {
      const stranger = plat.with({ PLAT_REGISTRY_PASSWORD: 'wrong' })
      const { exitCode, err } = await stranger.run(['module', 'push', '--dir', 'greeting'])
      expect([exitCode, err]).toEqual([1, expect.stringMatching(/PLAT_REGISTRY_USERNAME .* docker login\n$/)])
      expect(err).not.toContain('wrong')
    })

    const lackingSkopeo = missingPrograms('skopeo')
    test.skipIf(lackingSkopeo !== '')(`can be copied with skopeo${lackingSkopeo}`, async () => {
      const options = ['--tls-verify=false', '--creds', `${registry.username}:${password}`]
      const told = JSON.parse(
        await outputOf('skopeo', 'inspect', ...options, `docker://${registry.host}/team/other:0.2.0`),
      )
      expect(told.Labels).toMatchObject({ 'org.platform.module': 'true', 'org.platform.module.version': '0.2.0' })
      const carried = ['--quiet', '--dest-tls-verify=false', '--dest-creds', `${registry.username}:${password}`]
      const target = `${registry.host}/site/greeting:0.2.0`
      await outputOf('skopeo', 'copy', ...carried, `oci:${author.module}/dist/image:0.2.0`, `docker://${target}`)
      await plat.prints(['module', 'sign', target, '--key', 'ada.key'])
      expect(await plat.json(['module', 'verify', target, '--key', 'ada.pub'])).toMatchObject({ digest: told.Digest })
    })
  })
})
