import { ModuleManifest } from '@platform/contract/manifest'
import { hello } from '@platform/hello/hello'
import manifest from '../../packages/hello/module.json' with { type: 'json' }
import { deliverEvents } from '@platform/worker/modules/lifecycle/events'
import { runJob } from '@platform/worker/modules/lifecycle/events'
import { runLifecycle } from '@platform/worker/modules/lifecycle/run'
import { shutDown } from '@platform/worker/modules/lifecycle/shut-down'
import { manifestOf } from '@platform/cli/author/manifest-from-code'
import { describe as describeModule } from '@platform/modules/describe'
import { sdkVersion } from '@platform/modules/protocol'
import { icons } from 'lucide-react'
import semver from 'semver'
import { expect, test } from 'vitest'
import packageJson from '../../packages/hello/package.json' with { type: 'json' }
import { cloudEvent, moduleProcesses } from '../support/module-process.ts'
import { userToken } from '../support/user-token.ts'

const { $schema, metadata, spec } = ModuleManifest.parse(manifest)
const source = { metadata, spec, ...($schema !== undefined && { $schema }) }

test('the manifest of hello is valid, matches its code and package, and supports this SDK', () => {
  expect(ModuleManifest.parse(manifest)).toEqual(manifest)
  expect(manifestOf(describeModule(hello), source)).toEqual(manifest)
  expect(packageJson.version).toBe(metadata.version)
  expect(spec.image).toMatch(new RegExp(`:${metadata.version}$`))
  expect(icons).toHaveProperty('Hand')
  expect(semver.satisfies(sdkVersion, spec.sdkVersion)).toBe(true)
})

test('a manifest from code ignores contradicting input and rejects an invalid result', () => {
  const staleManifest = {
    ...source,
    metadata: { ...metadata, id: 'other', version: '9.0.0' },
    spec: { ...spec, navSlots: [], healthChecks: [], backgroundJobs: [] },
  }
  expect(manifestOf(describeModule(hello), staleManifest)).toEqual(manifest)
  const invalidSource = { ...source, spec: { ...spec, apiBasePath: '/api/v1/sample' } }
  expect(() => manifestOf(describeModule(hello), invalidSource)).toThrow('apiBasePath')
})

test('hello serves its API and page, runs its job, handles events and stops', async () => {
  const runtime = moduleProcesses()
  const deployment = await runtime.deploy({
    id: 'hello-1',
    moduleId: 'hello',
    version: '1.0.0',
    repository: 'packages/hello/src/main.ts',
    digest: 'sha256:0',
    organisationId: 'org_acme',
    startsItself: false,
    mayRunAsProcess: false,
  })
  const [result] = await runLifecycle(runtime, [{ deployment, manifest: ModuleManifest.parse(manifest) }])
  expect(result).toMatchObject({ outcome: 'Running', warnings: [], subscriptions: ['platform.cluster.status_changed'] })
  const get = async (path: string) => {
    const headers = { 'x-platform-user': userToken({ aud: 'hello' }) }
    const limits = { timeoutMs: 5000, maxBytes: 100_000 }
    const response = await runtime.request(deployment, { method: 'GET', path, headers }, limits)
    return { ...response, text: Buffer.from(response.body).toString() }
  }
  const { timestamp, ...greeting } = JSON.parse((await get('/api/hello')).text)
  expect(greeting).toEqual({ message: 'Hello, World!', moduleId: 'hello', moduleVersion: '1.0.0' })
  expect(new Date(timestamp).toISOString()).toBe(timestamp)
  const page = await get('/modules/hello')
  expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=UTF-8'])
  expect(page.text).toMatch(/^<!doctype html>.*<title>Hello World<\/title>.*<h1>Hello, World!<\/h1>/s)
  // The page must not use features that the sandbox of the portal blocks.
  expect(page.text).not.toMatch(
    /src=|style=|<link(?! rel="stylesheet" href="\/module-page\.css")|<img|<form|\son\w+=|fetch\(|cookie|Storage/,
  )

  expect(await runJob(runtime, deployment, 'heartbeat', 5000)).toMatchObject({ outcome: 'Completed' })
  const data = { clusterId: 'clus_1', name: 'berlin-1', status: 'Offline', previousStatus: 'Healthy' }
  const event = { ...cloudEvent('evt_1'), type: 'platform.cluster.status_changed', data }
  expect(await deliverEvents(runtime, deployment, [event])).toMatchObject({ handled: ['evt_1'], failed: [] })
  const lines = () => runtime.lines(deployment)
  await expect.poll(lines).toContainEqual(expect.objectContaining({ category: 'heartbeat', level: 'info' }))
  const change = { category: 'clusters', cluster: 'berlin-1', status: 'Offline' }
  await expect.poll(lines).toContainEqual(expect.objectContaining(change))
  for (const line of lines()) expect(line).toMatchObject({ module_id: 'hello', module_version: '1.0.0' })
  expect(await shutDown(runtime, deployment)).toEqual({ problems: [], published: [] })
})
