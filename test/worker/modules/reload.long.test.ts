// First: it sets what the platform may reach, which core reads when it is imported.
import {
  requestInstall,
  openRuntime,
  output,
  pick,
  runtime,
  storedTraces,
  runningModule,
  takeEventData,
} from '../../core/support/module-platform.ts'
import { pushModule, registry, withoutRegistry } from '../../core/support/module-images.ts'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import * as Module from '@platform/core/modules/module'
import { supervise } from '@platform/worker/modules/supervise'
import { RuntimeError } from '@platform/worker/runtimes/port'
import { waitFor } from '../../support/wait-for.ts'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { runModuleOperation } from '../../core/support/module-operations.ts'
import { newModuleId } from '../../core/support/modules.ts'

await bootstrapPlatform()
const admin = () => newCaller(undefined, 'PlatformAdmin')

const tick = () => supervise(pick)

/** Another runtime, as the platform has after a restart. */
async function restarted(images?: string) {
  const other = await openRuntime(newModuleId(), images)
  onTestFinished(() => other.close(0))
  return { other, tickThere: () => supervise(async () => other) }
}

test('after a restart all modules run again, all configured before any starts, and are reached where they run now', async () => {
  const { caller, id: slow } = await runningModule({ configureMs: 500 })
  const { id: fast } = await runningModule()
  const { other, tickThere } = await restarted()
  output.length = 0
  await Promise.all([tickThere(), tickThere()])
  const ids = (await other.list()).map(({ deployment }) => deployment.moduleId)
  expect(ids.toSorted()).toEqual([slow, fast].toSorted())
  const lines = output.filter((line) => / hook /.test(line)).map((line) => line.split(' '))
  const timesOf = (hook: string) => lines.filter((line) => line[2] === hook).map((line) => Number(line[3]))
  expect([timesOf('configure').length, timesOf('start').length]).toEqual([2, 2])
  expect(Math.max(...timesOf('configure'))).toBeLessThan(Math.min(...timesOf('start')))
  for (const id of [slow, fast]) {
    const { row, claim } = await storedTraces(id)
    expect(row?.state).toBe('Running')
    expect(JSON.parse(String(claim)).deployment).toEqual(row?.deployment)
    const there = (await other.list()).find(({ deployment }) => deployment.moduleId === id)
    expect(there?.deployment).toEqual(row?.deployment)
  }
  const told = (await takeEventData(caller)).filter(({ name }) => !name.endsWith('.configured'))
  expect(told).toEqual([])
})

test('a module that cannot be configured after a restart has failed; the others run', async () => {
  let mayConfigure = true
  const asked = createServer((_request, response) => void response.writeHead(mayConfigure ? 204 : 409).end())
  onTestFinished(() => void asked.close())
  await once(asked.listen(0, '127.0.0.1'), 'listening')
  const { port } = asked.address() as AddressInfo
  const { caller, id } = await runningModule({ asks: `http://127.0.0.1:${port}/` })
  const { id: neighbour } = await runningModule()
  mayConfigure = false
  const { other, tickThere } = await restarted()
  await tickThere()
  expect(await Module.read(id)).toMatchObject({
    state: 'Failed',
    health: 'Unhealthy',
    lastError: { code: 'PLAT-MOD-5004', message: 'It throws in configure.' },
  })
  const { row, claim } = await storedTraces(id)
  expect([row?.deployment, JSON.parse(String(claim))]).toEqual([undefined, { apiBasePath: `/api/${id}` }])
  expect(await takeEventData(caller)).toEqual([
    {
      name: 'module.failed',
      moduleId: id,
      version: '1.0.0',
      code: 'PLAT-MOD-5004',
      message: 'It throws in configure.',
    },
  ])
  expect((await Module.read(neighbour)).state).toBe('Running')
  expect((await other.list()).map(({ deployment }) => deployment.moduleId)).toEqual([neighbour])
  await tickThere()
  expect(await takeEventData(caller)).toEqual([])
})

test('a module whose image cannot be had just now misses its beats, and runs when it can', async () => {
  const { id } = await runningModule()
  const { other, tickThere } = await restarted('no-images')
  await withoutRegistry(tickThere)
  expect((await storedTraces(id)).row?.state).toBe('Running')
  expect((await storedTraces(id)).health).toMatchObject({ missed: 1 })
  await tickThere()
  expect((await other.list()).map(({ deployment }) => deployment.moduleId)).toEqual([id])
  await tickThere()
  expect((await storedTraces(id)).health).toMatchObject({ missed: 0, health: 'Healthy' })
})

test('a module that was deployed again by somebody who was ended then is led through its hooks at the next tick', async () => {
  const { id } = await runningModule({ configureMs: 100 })
  const { row } = await storedTraces(id)
  const { other, tickThere } = await restarted()
  const { organisationId, release, deployment } = row!
  const { moduleId, version, repository, digest } = release
  const assignment = { moduleId, version, repository, digest, organisationId, startsItself: false }
  await other.deploy({ ...assignment, id: deployment!.id })
  output.length = 0
  await tickThere()
  expect(output.map((line) => line.split(' ')[2]).filter((word) => /^(configure|start)$/.test(word ?? ''))).toEqual([
    'configure',
    'start',
  ])
  const [there] = await other.list()
  expect((await storedTraces(id)).row?.deployment).toEqual(there?.deployment)
})

test('what runs for no module is removed; what an operation has deployed is not', async () => {
  const caller = await admin()
  const [stray, id] = [newModuleId(), newModuleId()]
  const { digest } = await pushModule({ id: stray })
  const assignment = { version: '1.0.0', digest, organisationId: caller.organisationId, startsItself: true }
  const repository = `${registry.host}/modules/${stray}`
  await runtime.deploy({ ...assignment, id: `${stray}-x`, moduleId: stray, repository })
  const { reference } = await pushModule({ id, configureMs: 1500 })
  const working = runModuleOperation(await requestInstall(caller, reference), pick)
  await waitFor('it is deployed', async () => (await storedTraces(id)).deployments.length > 0)
  await tick()
  expect((await storedTraces(stray)).deployments).toEqual([])
  expect((await storedTraces(id)).deployments).toHaveLength(1)
  await working
  expect((await Module.read(id)).state).toBe('Running')
})

test('where nobody can tell what runs nothing is started and nothing removed', async () => {
  const { id } = await runningModule()
  const before = await storedTraces(id)
  let deploys = 0
  await supervise(async () => ({
    ...runtime,
    list: () => Promise.reject(new RuntimeError('timeout', 'No answer.')),
    deploy: (assignment) => (deploys++, runtime.deploy(assignment)),
  }))
  const after = await storedTraces(id)
  expect([deploys, after.deployments, after.row]).toEqual([0, before.deployments, before.row])
})
