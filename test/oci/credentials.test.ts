import { mediaTypes } from '@platform/oci/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordGuard, startDockerRegistry } from '../support/docker-registry.ts'
import { missingPrograms } from '../support/installed-programs.ts'
import { startTokenServer, type TokenServer } from '../support/token-server.ts'
import { ada, all, blobOf, clientOf, failureOf, pushBySkopeo } from './support.ts'

const lacking = missingPrograms('docker-registry', 'skopeo')
const forgetful = async () => ({ ...ada, password: 'wrong staple' })

/** The same of every registry that wants to know who asks. */
async function expectGuarded(host: string): Promise<void> {
  const digest = await pushBySkopeo(host)
  const { client } = clientOf(host, { credentials: async () => ada })
  expect(await client.resolve('team/hello', '1.0.0')).toMatchObject({ digest })
  expect(await all(client.tags('team/hello'))).toEqual(['1.0.0'])
  await client.putBlob('team/hello', Buffer.from('pushed'))
  expect(await client.blob('team/hello', blobOf('pushed'))).toEqual(Buffer.from('pushed'))
  expect(await client.putBlob('team/other', Buffer.from('pushed'), { mountFrom: 'team/hello' })).toMatchObject({
    size: 6,
  })
  const manifest = (await client.manifest('team/hello', '1.0.0'))!
  expect(await client.putManifest('team/hello', 'again', manifest.bytes, mediaTypes.manifest)).toMatchObject({ digest })
  expect(await all(client.repositories())).toEqual(['team/hello', 'team/other'])
  await client.remove('team/hello', digest)
  expect(await client.resolve('team/hello', 'again')).toBeUndefined()
}

async function expectStrangersRefused(host: string): Promise<void> {
  const stranger = await failureOf(clientOf(host).client.resolve('team/hello', '1.0.0'))
  expect(stranger.problem).toBe('unauthorized')
  const wrong = await failureOf(clientOf(host, { credentials: forgetful }).client.resolve('team/hello', '1.0.0'))
  expect(wrong).toMatchObject({ problem: 'unauthorized', message: expect.stringContaining('Check the credentials') })
}

describe.skipIf(lacking !== '')(`a registry that wants a password${lacking}`, () => {
  let registry: Awaited<ReturnType<typeof startDockerRegistry>>
  beforeAll(async () => {
    registry = await startDockerRegistry(passwordGuard)
  })
  afterAll(() => registry?.[Symbol.asyncDispose]())

  test('everything works with the password', () => expectGuarded(registry.host))
  test('nothing works without it, or with another', () => expectStrangersRefused(registry.host))

  test('the password is asked for once for each right, and not with every request', async () => {
    const { client, sent } = clientOf(registry.host, { credentials: async () => ada })
    for (let times = 0; times < 3; times += 1) await client.resolve('team/hello', 'latest')
    expect(sent).toHaveLength(4)
  })
})

const lackingHere = missingPrograms('docker-registry', 'skopeo', 'openssl')
describe.skipIf(lackingHere !== '')(`a registry that wants a token${lackingHere}`, () => {
  let tokens: TokenServer
  let registry: Awaited<ReturnType<typeof startDockerRegistry>>
  beforeAll(async () => {
    tokens = await startTokenServer()
    registry = await startDockerRegistry(tokens.guard)
  })
  afterAll(async () => {
    await registry?.[Symbol.asyncDispose]()
    await tokens?.[Symbol.asyncDispose]()
  })

  test('everything works with tokens, each for what is being done', async () => {
    await expectGuarded(registry.host)
  })

  test('a stranger gets none', () => expectStrangersRefused(registry.host))

  test('a token is used for as long as it holds, and is for no more than what is being done', async () => {
    tokens.granted.length = 0
    const { client, sent } = clientOf(registry.host, { credentials: async () => ada })
    for (let times = 0; times < 3; times += 1) await client.resolve('team/hello', 'latest')
    expect(sent).toHaveLength(5)
    await client.putBlob('team/mounted', Buffer.from('pushed'), { mountFrom: 'team/hello' })
    expect(tokens.granted).toEqual([
      ['repository:team/hello:pull'],
      ['repository:team/mounted:pull,push'],
      ['repository:team/mounted:pull,push', 'repository:team/hello:pull'],
    ])
  })
})
