import { registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectStatus } from '../../conformance/support/answer.ts'
import { type Client } from '../../conformance/support/client.ts'
import { waitFor } from '../../support/wait-for.ts'
import { isLong } from '../../support/long.ts'
import { PlatformProcess } from '../../support/platform.ts'

let platform: PlatformProcess
let admin: Client

beforeAll(async () => {
  platform = await PlatformProcess.start()
  admin = await (await platform.setUp()).admin
})
afterAll(() => platform[Symbol.asyncDispose]())

/** The token of somebody who has just signed in. */
async function accessToken(): Promise<string> {
  return (await (await platform.api()).signIn()).accessToken
}

const sourceOfHello = async (): Promise<string> => {
  const { items } = expectStatus(await admin.get('/api/v1/modules/catalog'), 200)
  expect(items).toMatchObject([{ id: 'hello', verified: true, verifiedBy: 'this platform', installed: false }])
  return items[0].catalogSource
}

test('the catalog of a platform that has just started for the first time shows the reference module, verified', async () => {
  expect(await sourceOfHello()).toMatch(/^127\.0\.0\.1:\d+\/modules\/hello$/)
})

test('the command prints the password that opens the registry to writers, and nothing else', async () => {
  const password = (await platform.command('npm run -s registry-password')).replace(/\n$/, '')
  const [host = ''] = (await sourceOfHello()).split('/')
  const credentials = async () => ({ username: 'platform', password })
  const client = registryClient(host, { transport: plainTransport, credentials })
  const { digest } = await client.putBlob('modules/mine', Buffer.from('content'))
  expect(await client.hasBlob('modules/mine', digest)).toBe(true)
})

// The journey of modules does the same by default.
test.runIf(isLong)('an installed module answers, is there again after a kill, and ends with the platform', async () => {
  const { jobId } = expectStatus(await admin.post('/api/v1/modules/hello/install', {}), 202)
  await waitFor('hello is installed', async () => {
    const { status } = expectStatus(await admin.get(`/api/v1/jobs/${jobId}`), 200)
    return status === 'Completed'
  })
  // Modules are not part of the contract that answers are held to.
  const hello = (headers: Record<string, string> = {}) => fetch(`${platform.url}/api/hello`, { headers })
  const bearer = { authorization: `Bearer ${await accessToken()}` }
  const answer = await hello(bearer)
  expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ moduleId: 'hello' })])
  expect((await hello()).status).toBe(401)

  await platform.kill()
  await platform.restart()
  await waitFor('hello answers', async () => (await hello(bearer)).status === 200)
  expect(await platform.stop()).toEqual({ exitCode: 0, signal: null })
  expect(platform.text).toContain('"message":"Goodbye"')
})
