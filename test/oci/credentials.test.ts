import { mediaTypes } from '@platform/oci/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordGuard, startDockerRegistry } from '../support/docker-registry.ts'
import { missingPrograms } from '../support/installed-programs.ts'
import { startTokenServer, type TokenServer } from '../support/token-server.ts'
import { ada, all, blobOf, clientOf, failureOf, pushBySkopeo } from './support.ts'

const noPeersReason = missingPrograms('docker-registry', 'skopeo')
const wrongCredentials = async () => ({ ...ada, password: 'wrong staple' })

/** Expects that all operations work with credentials. */
async function expectAccess(host: string): Promise<void> {
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

async function expectNoAccessWithoutCredentials(host: string): Promise<void> {
  const anonymous = await failureOf(clientOf(host).client.resolve('team/hello', '1.0.0'))
  expect(anonymous.problem).toBe('unauthorized')
  const wrong = await failureOf(clientOf(host, { credentials: wrongCredentials }).client.resolve('team/hello', '1.0.0'))
  expect(wrong).toMatchObject({ problem: 'unauthorized', message: expect.stringContaining('Check the credentials') })
}

describe.skipIf(noPeersReason !== '')(`a registry with Basic authentication${noPeersReason}`, () => {
  let registry: Awaited<ReturnType<typeof startDockerRegistry>>
  beforeAll(async () => {
    registry = await startDockerRegistry(passwordGuard)
  })
  afterAll(() => registry?.[Symbol.asyncDispose]())

  test('accepts all operations with the password', () => expectAccess(registry.host))
  test('rejects a missing or wrong password', () => expectNoAccessWithoutCredentials(registry.host))

  test('challenges only the first request of a scope', async () => {
    const { client, sent } = clientOf(registry.host, { credentials: async () => ada })
    for (let times = 0; times < 3; times += 1) await client.resolve('team/hello', 'latest')
    expect(sent).toHaveLength(4)
  })
})

const noTokensReason = missingPrograms('docker-registry', 'skopeo', 'openssl')
describe.skipIf(noTokensReason !== '')(`a registry with token authentication${noTokensReason}`, () => {
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

  test('accepts all operations with tokens', () => expectAccess(registry.host))
  test('rejects missing or wrong credentials', () => expectNoAccessWithoutCredentials(registry.host))

  test('reuses a token, and requests only the required scopes', async () => {
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
