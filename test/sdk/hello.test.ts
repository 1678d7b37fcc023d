import { ModuleManifest } from '@platform/contract/manifest'
import { hello } from '@platform/hello/hello'
import manifest from '../../packages/hello/module.json' with { type: 'json' }
import { deliverEvents } from '@platform/worker/modules/lifecycle/events'
import { runJob } from '@platform/worker/modules/lifecycle/jobs'
import { runLifecycle } from '@platform/worker/modules/lifecycle/run'
import { probe } from '@platform/worker/modules/lifecycle/probe'
import { shutDown } from '@platform/worker/modules/lifecycle/shut-down'
import { manifestOf } from '@platform/cli/author/manifest-from-code'
import { describe as describeModule } from '@platform/modules/describe'
import { sdkVersion } from '@platform/modules/protocol'
import { icons } from 'lucide-react'
import semver from 'semver'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import packageJson from '../../packages/hello/package.json' with { type: 'json' }
import { ModuleProcesses } from '../support/module-process.ts'
import { userToken } from '../support/user-token.ts'

describe('the manifest of hello', () => {
  test('is valid', () => {
    expect(ModuleManifest.parse(manifest)).toEqual(manifest)
  })

  test('says what its code says: nothing has drifted', () => {
    const { $schema, metadata, spec } = ModuleManifest.parse(manifest)
    const given = { metadata, spec, ...($schema !== undefined && { $schema }) }
    expect(manifestOf(describeModule(hello), given)).toEqual(manifest)
  })

  test('has the version of its package', () => {
    expect([packageJson.version, manifest.spec.image]).toEqual([
      manifest.metadata.version,
      expect.stringMatching(new RegExp(`:${manifest.metadata.version}$`)),
    ])
  })

  test('is what the specification says of the reference module', () => {
    expect(manifest.spec.navSlots).toEqual([
      { slotId: 'nav.primary', id: 'hello', label: 'Hello World', icon: 'hand', route: '/modules/hello', order: 100 },
    ])
    expect(manifest.spec.healthChecks).toMatchObject([{ name: 'hello-module', tags: ['informational'] }])
    expect(manifest.spec.backgroundJobs).toMatchObject([{ id: 'heartbeat', intervalSeconds: 60 }])
    expect(manifest.spec).toMatchObject({
      apiBasePath: '/api/hello',
      healthEndpoint: '/health',
      permissionsRequired: [],
    })
    expect(Object.keys(manifest.metadata)).toEqual(expect.arrayContaining(['publisher', 'license', 'repositoryUrl']))
  })

  test('names an icon that there is, and a range that the SDK is in', () => {
    expect(icons).toHaveProperty('Hand')
    expect(semver.satisfies(sdkVersion, manifest.spec.sdkVersion)).toBe(true)
  })
})

describe('hello as a process', () => {
  const runtime = new ModuleProcesses()
  const deployed = runtime.deploy({
    id: 'hello-1',
    moduleId: 'hello',
    version: '1.0.0',
    repository: 'packages/hello/src/main.ts',
    digest: 'sha256:0',
    organisationId: 'org_acme',
    startsItself: false,
  })
  const valid = ModuleManifest.parse(manifest)
  const limits = { timeoutMs: 5000, maxBytes: 100_000 }

  beforeAll(async () => {
    const [loaded] = await runLifecycle(runtime, [{ deployment: await deployed, manifest: valid }])
    expect(loaded).toEqual({
      moduleId: 'hello',
      outcome: 'Running',
      warnings: [],
      subscriptions: ['platform.cluster.status_changed'],
      published: [],
    })
  })
  afterAll(() => runtime[Symbol.asyncDispose]())

  const get = async (path: string) => {
    const headers = { 'x-platform-user': userToken({ aud: 'hello' }) }
    const answer = await runtime.request(await deployed, { method: 'GET', path, headers }, limits)
    return { ...answer, text: Buffer.from(answer.body).toString() }
  }

  const beats = async () =>
    runtime.lines(await deployed).filter(({ category, level }) => category === 'heartbeat' && level === 'info').length

  test('GET /api/hello greets with module id, version and time', async () => {
    const { status, headers, text } = await get('/api/hello')
    const { timestamp, ...greeting } = JSON.parse(text)
    expect([status, headers['content-type']]).toEqual([200, 'application/json'])
    expect(greeting).toEqual({ message: 'Hello, World!', moduleId: 'hello', moduleVersion: '1.0.0' })
    expect(new Date(timestamp).toISOString()).toBe(timestamp)
    expect(Math.abs(Date.parse(timestamp) - Date.now())).toBeLessThan(60_000)
  })

  test('GET /modules/hello is a page with a title and a greeting, and nothing that a sandbox forbids', async () => {
    const { status, headers, text } = await get('/modules/hello')
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=UTF-8'])
    expect(text).toMatch(/^<!doctype html>/)
    expect(text).toContain('<title>Hello World</title>')
    expect(text).toMatch(/<h1>Hello, World!<\/h1>/)
    expect(text).not.toMatch(/src=|style=|<link|<img|<form|\son\w+=|fetch\(|cookie|Storage/)
  })

  test('its health check is Healthy, always', async () => {
    expect(await probe(runtime, await deployed, valid)).toMatchObject({
      isResponding: true,
      isHealthy: true,
      checks: [{ name: 'hello-module', status: 'Healthy', tags: ['informational'] }],
    })
  })

  test('its heartbeat writes a line each time that it is called', async () => {
    expect(await beats()).toBe(0)
    for (const count of [1, 2]) {
      expect(await runJob(runtime, await deployed, 'heartbeat', 5000)).toMatchObject({ outcome: 'Completed' })
      await expect.poll(beats).toBe(count)
    }
  })

  test('it notes that a cluster has changed its status', async () => {
    const data = { clusterId: 'clus_1', name: 'berlin-1', status: 'Offline', previousStatus: 'Healthy' }
    const delivery = await deliverEvents(runtime, await deployed, [
      {
        specversion: '1.0',
        id: 'evt_1',
        source: '/organisations/org_acme',
        type: 'platform.cluster.status_changed',
        subject: 'clus_1',
        time: new Date().toISOString(),
        datacontenttype: 'application/json',
        data,
      },
    ])
    expect(delivery).toMatchObject({ handled: ['evt_1'], failed: [] })
    await expect
      .poll(async () => runtime.lines(await deployed))
      .toContainEqual(expect.objectContaining({ category: 'clusters', cluster: 'berlin-1', status: 'Offline' }))
  })

  test('everything that it logs says which module it is', async () => {
    const lines = runtime.lines(await deployed)
    expect(lines.length).toBeGreaterThan(0)
    for (const line of lines) expect(line).toMatchObject({ module_id: 'hello', module_version: '1.0.0' })
  })

  test('it ends without a word of complaint', async () => {
    expect(await shutDown(runtime, await deployed)).toEqual({ problems: [], published: [] })
    expect(await runtime.list()).toEqual([])
  })
})
