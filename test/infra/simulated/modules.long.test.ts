import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DeleteFunctionCommand, ListFunctionsCommand } from '@aws-sdk/client-lambda'
import { generateKeyPair } from '@platform/oci/signature/key'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectStatus } from '../../conformance/support/answer.ts'
import type { Client } from '../../conformance/support/client.ts'
import {
  healthChecksOf,
  navigationEntriesOf,
  findCatalogItem,
  waitForJobEnd,
} from '../../conformance/support/modules.ts'
import { pushModuleImage, writtenManifest } from '../../support/module-registry.ts'
import { type SimulatedPlatform, startSimulatedPlatform } from '../../support/simulator.ts'
import { waitFor } from '../../support/wait-for.ts'
import { unusedActions, unusedGrantsOf } from '../grant.ts'
import { moduleGrants } from './grants/exceptions.ts'

/** The reference module as a Lambda function. Tests build on earlier ones. */

const hello = '/api/v1/modules/hello'
const key = generateKeyPair()
let environment: SimulatedPlatform
let admin: Client

beforeAll(async () => {
  const keys = [{ name: 'tests', pem: key.publicKeyPem }]
  environment = await startSimulatedPlatform({ PLAT_MODULE_KEYS: JSON.stringify(keys) })
  admin = await environment.api.admin
})
afterAll(() => environment[Symbol.asyncDispose]())

async function jobOf(response: ReturnType<Client['post']>): Promise<any> {
  const job = await waitForJobEnd(environment.api, expectStatus(await response, 202))
  expect(environment.simulator.cloud.iamProxy.denials).toEqual([])
  return job
}

async function push(id: string, version: string, { program, manifest }: { program: string; manifest: string }) {
  const files = [{ path: '/app/main.mjs', content: program }]
  const config = { Entrypoint: ['node', '/app/main.mjs'], WorkingDir: '/app' }
  const { client } = environment.simulator.releases
  await pushModuleImage(client, id, { version, manifest, files, config }, key.privateKeyPem)
  await environment.tick('schedule/catalog')
}

async function pushHello(version: string): Promise<void> {
  const textOf = async (path: string) =>
    (await readFile(join(import.meta.dirname, '../../..', path), 'utf8')).replaceAll('1.0.0', version)
  const [program, manifest] = [await textOf('dist/hello.mjs'), await textOf('packages/hello/module.json')]
  await push('hello', version, { program, manifest })
}

async function moduleFunctions(): Promise<string[]> {
  const { Functions = [] } = await environment.simulator.cloud.lambda.send(new ListFunctionsCommand({}))
  return Functions.map(({ FunctionName = '' }) => FunctionName).filter((name) => name.startsWith('platform-dev-mod-'))
}

test('lists the signed module in the catalog', async () => {
  await environment.tick('schedule/catalog')
  expect(await findCatalogItem(admin, 'hello')).toMatchObject({ version: '1.0.0', verified: true, installed: false })
})

test('installs the module as a function that serves its API, page and health check', async () => {
  expect(await jobOf(admin.post(`${hello}/install`, {}))).toMatchObject({ type: 'ModuleInstall', status: 'Completed' })
  expect(expectStatus(await admin.get('/api/hello'), 200)).toMatchObject({ moduleId: 'hello', moduleVersion: '1.0.0' })
  expect((await admin.get('/modules/hello')).headers.get('content-type')).toMatch(/^text\/html/)
  expect(await navigationEntriesOf(admin, 'hello')).toMatchObject([{ route: '/modules/hello' }])
  await environment.tick('schedule/heartbeat')
  expect(await healthChecksOf(environment.api, 'hello')).toMatchObject([{ name: 'hello-module', status: 'Healthy' }])
})

test('delivers events to the module once an organisation enables it', async () => {
  expectStatus(await admin.put('/api/v1/organisation/modules/hello', { enabled: true }), 200)
  const relay = await environment.api.newRelay()
  await relay.heartbeat()
  const isLogged = async () => environment.lines.some((line) => line.includes('has changed its status'))
  await waitFor('the module to log the event', isLogged)
})

test('upgrades the module in the same function', async () => {
  await pushHello('1.1.0')
  expect(await jobOf(admin.post(`${hello}/install`, {}))).toMatchObject({ status: 'Completed' })
  expect(expectStatus(await admin.get('/api/hello'), 200)).toMatchObject({ moduleVersion: '1.1.0' })
  expect(await moduleFunctions()).toEqual(['platform-dev-mod-hello'])
})

test('recreates a deleted function at the next health check', async () => {
  const FunctionName = 'platform-dev-mod-hello'
  await environment.simulator.cloud.lambda.send(new DeleteFunctionCommand({ FunctionName }))
  expect((await admin.get('/api/hello')).status).toBe(503)
  await environment.tick('schedule/heartbeat')
  expect(expectStatus(await admin.get('/api/hello'), 200)).toMatchObject({ moduleVersion: '1.1.0' })
})

test('removes the function of a module that does not start', async () => {
  const manifest = JSON.stringify(writtenManifest('broken'))
  await push('broken', '1.0.0', { program: 'process.exit(1)', manifest })
  expect(await jobOf(admin.post('/api/v1/modules/broken/install', {}))).toMatchObject({ status: 'Failed' })
  expect(await moduleFunctions()).toEqual(['platform-dev-mod-hello'])
})

test('uninstalls the module with its function and images', async () => {
  expect(await jobOf(admin.delete(hello))).toMatchObject({ type: 'ModuleUninstall', status: 'Completed' })
  expectStatus(await admin.get('/api/hello'), 404, 'route_not_found')
  expect([await navigationEntriesOf(admin, 'hello'), await healthChecksOf(environment.api, 'hello')]).toEqual([[], []])
  expect(await moduleFunctions()).toEqual([])
})

test('uses every grant and every action for modules', () => {
  const { simulator } = environment
  expect(unusedGrantsOf(simulator, moduleGrants)).toEqual([])
  expect(unusedActions(simulator, /^(modules:|queue:modules)/)).toEqual([])
})
