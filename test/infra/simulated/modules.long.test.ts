import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DeleteFunctionCommand, ListFunctionsCommand } from '@aws-sdk/client-lambda'
import { buildImage } from '@platform/oci/build'
import { pushImage } from '@platform/oci/push'
import { generateKeyPair } from '@platform/oci/signature/key'
import { signImage } from '@platform/oci/signature/sign'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectStatus } from '../../conformance/support/answer.ts'
import type { Client } from '../../conformance/support/client.ts'
import { checksOf, entriesOf, inCatalog, over } from '../../conformance/support/modules.ts'
import { waitFor } from '../../support/wait-for.ts'
import { moduleLabels, writtenManifest } from '../../support/module-registry.ts'
import { type SimulatedPlatform, startSimulatedPlatform } from '../../support/simulator.ts'

/**
 * The reference module as a function of Lambda, with no more rights than the deployment gives. One test follows another. By
 * default the tests of the grants beside show that a module comes, answers, hears and goes, and that nothing is denied to it.
 */

const key = generateKeyPair()
const hello = '/api/v1/modules/hello'
let stage: SimulatedPlatform
let admin: Client

beforeAll(async () => {
  stage = await startSimulatedPlatform({ PLAT_MODULE_KEYS: JSON.stringify([{ name: 'tests', pem: key.publicKeyPem }]) })
  admin = await stage.api.admin
}, 180_000)
afterAll(() => stage[Symbol.asyncDispose]())

/** How a job ended, all of whose demands were allowed. */
async function done(asked: ReturnType<Client['post']>): Promise<any> {
  const job = await over(stage.api, expectStatus(await asked, 202))
  expect(stage.simulator.cloud.gate.denials).toEqual([])
  return job
}

/** What a function was allowed to do since the simulator began. */
function usedBy(name: string): Set<string> {
  const { functions, cloud } = stage.simulator
  const { statements = [] } = functions.find((each) => each.name === name) ?? {}
  return new Set(statements.flatMap((each) => Array.from(cloud.gate.used.get(each) ?? [])))
}

/** Puts a module into the registry, signed. */
async function push(id: string, version: string, { program, manifest }: { program: string; manifest: string }) {
  const { client } = stage.simulator.releases
  const image = await buildImage({
    files: [
      { path: '/module.json', content: manifest },
      { path: '/app/main.mjs', content: program },
    ],
    config: { Entrypoint: ['node', '/app/main.mjs'], WorkingDir: '/app' },
    labels: moduleLabels(id, version),
  })
  const { digest } = await pushImage(client, `modules/${id}`, image, [version])
  await signImage(client, `modules/${id}`, digest, key.privateKeyPem)
  await stage.tick('schedule/catalog')
}

/** The reference module as another version of it. */
async function pushHello(version: string): Promise<void> {
  const textOf = async (path: string) =>
    (await readFile(join(import.meta.dirname, '../../..', path), 'utf8')).replaceAll('1.0.0', version)
  const [program, manifest] = [await textOf('dist/hello.mjs'), await textOf('packages/hello/module.json')]
  await push('hello', version, { program, manifest })
}

test('every clock of the deployment may do what it does, and the catalog then lists the signed hello', async () => {
  for (const name of ['catalog', 'heartbeat', 'sweep', 'updates']) await stage.tick(`schedule/${name}`)
  expect(await inCatalog(admin, 'hello')).toMatchObject({ version: '1.0.0', verified: true, installed: false })
  expect(stage.simulator.cloud.gate.denials).toEqual([])
})

test('hello is installed as a function whose image lies in the account’s registry, and answers', async () => {
  expect(await done(admin.post(`${hello}/install`, {}))).toMatchObject({ type: 'ModuleInstall', status: 'Completed' })
  expect(expectStatus(await admin.get('/api/hello'), 200)).toMatchObject({ moduleId: 'hello', moduleVersion: '1.0.0' })
  expect((await admin.get('/modules/hello')).headers.get('content-type')).toMatch(/^text\/html/)
  expect(await entriesOf(admin, 'hello')).toMatchObject([{ route: '/modules/hello' }])
  await stage.tick('schedule/heartbeat')
  expect(await checksOf(stage.api, 'hello')).toMatchObject([{ name: 'hello-module', status: 'Healthy' }])
  const pushing = ['CreateRepository', 'SetRepositoryPolicy', 'InitiateLayerUpload', 'UploadLayerPart', 'PutImage']
  expect([...usedBy('queue/updates')]).toEqual(expect.arrayContaining(pushing.map((action) => `ecr:${action}`)))
})

test('events reach it by the queue of modules', async () => {
  const relay = await stage.api.newRelay()
  await relay.heartbeat()
  await waitFor('hello has logged it', async () => stage.lines.some((line) => line.includes('has changed its status')))
  expect(usedBy('queue/modules')).toContain('lambda:InvokeFunction')
})

test('a newer version takes its place in the same function', async () => {
  await pushHello('1.1.0')
  expect(await done(admin.post(`${hello}/install`, {}))).toMatchObject({ status: 'Completed' })
  expect(expectStatus(await admin.get('/api/hello'), 200)).toMatchObject({ moduleVersion: '1.1.0' })
  const changing = ['lambda:UpdateFunctionCode', 'lambda:UpdateFunctionConfiguration', 'lambda:PublishVersion']
  expect([...usedBy('queue/updates')]).toEqual(expect.arrayContaining(changing))
})

test('a function that somebody has removed is made again by the next look at it', async () => {
  const FunctionName = 'platform-dev-mod-hello'
  await stage.simulator.cloud.lambda.send(new DeleteFunctionCommand({ FunctionName }))
  expect((await admin.get('/api/hello')).status).toBe(503)
  await stage.tick('schedule/heartbeat')
  expect(expectStatus(await admin.get('/api/hello'), 200)).toMatchObject({ moduleVersion: '1.1.0' })
  expect(stage.simulator.cloud.gate.denials).toEqual([])
  const making = ['lambda:CreateFunction', 'lambda:TagResource', 'iam:PassRole', 'ecr:GetAuthorizationToken']
  expect([...usedBy('schedule/heartbeat')]).toEqual(expect.arrayContaining(making))
})

test('of a module that does not start nothing is left, and the role is enough to clear it away', async () => {
  const manifest = JSON.stringify(writtenManifest('broken'))
  await push('broken', '1.0.0', { program: 'process.exit(1)', manifest })
  expect(await done(admin.post('/api/v1/modules/broken/install', {}))).toMatchObject({ status: 'Failed' })
  const { Functions = [] } = await stage.simulator.cloud.lambda.send(new ListFunctionsCommand({}))
  const names = Functions.map(({ FunctionName }) => FunctionName)
  expect(names.filter((name) => name?.startsWith('platform-dev-mod-'))).toEqual(['platform-dev-mod-hello'])
  expect(usedBy('queue/updates')).toContain('lambda:ListFunctions')
})

test('once it is uninstalled all of it is gone, its images too', async () => {
  expect(await done(admin.delete(hello))).toMatchObject({ type: 'ModuleUninstall', status: 'Completed' })
  expectStatus(await admin.get('/api/hello'), 404, 'route_not_found')
  expect([await entriesOf(admin, 'hello'), await checksOf(stage.api, 'hello')]).toEqual([[], []])
  expect(usedBy('queue/updates')).toContain('ecr:DeleteRepository')
})
