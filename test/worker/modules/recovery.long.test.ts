// Imported first, because it sets the registry allowlist and the trusted keys, which core reads when it is imported.
import {
  requestInstall,
  openRuntime,
  output,
  pick,
  runtime,
  storedTraces,
  noTraces,
  runningModule,
  takeEventData,
  requestUninstall,
  readActorLog,
} from '../../core/support/module-platform.ts'
import { cases, expectEnd } from '../../core/support/module-cases.ts'
import { pushModule, registry } from '../../core/support/module-images.ts'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as Job from '@platform/core/jobs/job'
import * as Module from '@platform/core/modules/module'
import { operationLeaseMs } from '@platform/core/operations/operation'
import { supervise } from '@platform/worker/modules/supervise'
import { RuntimeError, type ModuleRuntime } from '@platform/worker/runtimes/port'
import { beforeCommand, crashAtCall, onStoreCall } from '../../support/store-calls.ts'
import { waitFor } from '../../support/wait-for.ts'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { deadLetterModuleOperation, runModuleOperation } from '../../core/support/module-operations.ts'
import { receiveMessages } from '../../core/support/messages.ts'
import { newModuleId } from '../../core/support/modules.ts'
import { advanceClock } from '../../support/clock.ts'

await bootstrapPlatform()
const admin = () => newCaller(undefined, 'PlatformAdmin')
const expireLease = () => advanceClock(operationLeaseMs + 1)

const unavailable = () => Promise.reject(new RuntimeError('unavailable', 'The host is away.'))
const withoutDeploy = async () => ({ ...runtime, deploy: unavailable })
const withoutRemove = async () => ({ ...runtime, remove: unavailable })

beforeEach(async () => void (await receiveMessages(config.PLAT_QUEUE_INSTALLS)))

async function restartRuntime(images?: string) {
  const other = await openRuntime(newModuleId(), images)
  onTestFinished(() => other.close(0))
  return { other, tick: () => supervise(async () => other) }
}

test('restarts all modules, configures all before it starts any, and updates their routes', async () => {
  const { caller, id: slow } = await runningModule({ configureMs: 500 })
  const { id: fast } = await runningModule()
  const { other, tick } = await restartRuntime()
  output.length = 0
  await Promise.all([tick(), tick()])
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
    const status = (await other.list()).find(({ deployment }) => deployment.moduleId === id)
    expect(status?.deployment).toEqual(row?.deployment)
  }
  const events = (await takeEventData(caller)).filter(({ name }) => !name.endsWith('.configured'))
  expect(events).toEqual([])
})

test('fails a module that cannot be configured after a restart, and runs the others', async () => {
  let mayConfigure = true
  const server = createServer((_request, response) => void response.writeHead(mayConfigure ? 204 : 409).end())
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const { caller, id } = await runningModule({ asks: `http://127.0.0.1:${port}/` })
  const { id: neighbour } = await runningModule()
  mayConfigure = false
  const { other, tick } = await restartRuntime()
  await tick()
  expect(await Module.read(id)).toMatchObject({
    state: 'Failed',
    health: 'Unhealthy',
    lastError: { code: 'PLAT-MOD-5004', message: 'It throws in configure.' },
  })
  const { row, claim } = await storedTraces(id)
  expect(row?.deployment).toBeUndefined()
  expect(JSON.parse(String(claim))).toMatchObject({ apiBasePath: `/api/${id}` })
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
  await tick()
  expect(await takeEventData(caller)).toEqual([])
})

test('counts a missed heartbeat while an image is unavailable, and runs the module later', async () => {
  const { id } = await runningModule()
  const { other, tick } = await restartRuntime('no-images')
  await registry.stopDuring(tick)
  expect((await storedTraces(id)).row?.state).toBe('Running')
  expect((await storedTraces(id)).health).toMatchObject({ missed: 1 })
  await tick()
  expect((await other.list()).map(({ deployment }) => deployment.moduleId)).toEqual([id])
  await tick()
  expect((await storedTraces(id)).health).toMatchObject({ missed: 0, health: 'Healthy' })
})

test('runs the hooks of a module that a killed worker has deployed', async () => {
  const { id } = await runningModule({ configureMs: 100 })
  const { row } = await storedTraces(id)
  const { other, tick } = await restartRuntime()
  const { organisationId, release, deployment } = row!
  const { moduleId, version, repository, digest } = release
  const assignment = {
    moduleId,
    version,
    repository,
    digest,
    organisationId,
    startsItself: false,
    mayRunAsProcess: false,
  }
  await other.deploy({ ...assignment, id: deployment!.id })
  output.length = 0
  await tick()
  const hooks = output.map((line) => line.split(' ')[2]).filter((word) => /^(configure|start)$/.test(word ?? ''))
  expect(hooks).toEqual(['configure', 'start'])
  const [status] = await other.list()
  expect((await storedTraces(id)).row?.deployment).toEqual(status?.deployment)
})

test('removes a deployment without a module, but none of a running operation', async () => {
  const caller = await admin()
  const [strayId, id] = [newModuleId(), newModuleId()]
  const { digest } = await pushModule({ id: strayId })
  const assignment = {
    version: '1.0.0',
    digest,
    organisationId: caller.organisationId,
    startsItself: true,
    mayRunAsProcess: false,
  }
  const repository = `${registry.host}/modules/${strayId}`
  await runtime.deploy({ ...assignment, id: `${strayId}-x`, moduleId: strayId, repository })
  const { reference } = await pushModule({ id, configureMs: 1500 })
  const working = runModuleOperation(await requestInstall(caller, reference), pick)
  await waitFor('the module is deployed', async () => (await storedTraces(id)).deployments.length > 0)
  await supervise(pick)
  expect((await storedTraces(strayId)).deployments).toEqual([])
  expect((await storedTraces(id)).deployments).toHaveLength(1)
  await working
  expect((await Module.read(id)).state).toBe('Running')
})

test('starts and removes nothing while the deployments are unknown', async () => {
  const { id } = await runningModule()
  const tracesBefore = await storedTraces(id)
  let deploys = 0
  await supervise(async () => ({
    ...runtime,
    list: () => Promise.reject(new RuntimeError('timeout', 'No answer.')),
    deploy: (assignment) => (deploys++, runtime.deploy(assignment)),
  }))
  const tracesAfter = await storedTraces(id)
  expect([deploys, tracesAfter.deployments, tracesAfter.row]).toEqual([0, tracesBefore.deployments, tracesBefore.row])
})

test('retries an installation after the registry was unreachable', async () => {
  const [caller, id] = [await admin(), newModuleId()]
  const { reference } = await pushModule({ id })
  const acceptedInstall = await requestInstall(caller, reference)
  await receiveMessages(config.PLAT_QUEUE_INSTALLS)
  await registry.stopDuring(() => runModuleOperation(acceptedInstall, pick))
  const job = await Job.read(caller, acceptedInstall.jobId)
  expect(job).toMatchObject({ status: 'Running', steps: [{ name: 'verify', status: 'Running' }, {}, {}, {}, {}, {}] })
  expect(job.steps?.[0]?.message).toContain('Retrying after')
  await runModuleOperation(acceptedInstall, pick)
  expect((await Job.read(caller, acceptedInstall.jobId)).status).toBe('Running')
  advanceClock(5001)
  await runModuleOperation(acceptedInstall, pick)
  expect((await Job.read(caller, acceptedInstall.jobId)).status).toBe('Completed')
})

test('fails an installation without traces after five attempts', async () => {
  const { caller, id, accepted } = await cases.installation()
  for (let attempt = 1; attempt <= 5; attempt++) {
    expect((await Job.read(caller, accepted.jobId)).status).toBe(attempt === 1 ? 'Queued' : 'Running')
    await runModuleOperation(accepted, withoutDeploy)
    advanceClock(60_000)
  }
  const result = { output: 'The host is away. (PLAT-MOD-5007)', exitCode: 1 }
  expect(await Job.read(caller, accepted.jobId)).toMatchObject({ status: 'Failed', result })
  expect(await storedTraces(id)).toEqual(noTraces)
})

test('uninstalls a module that cannot be stopped, and removes it later', async () => {
  const { caller, id, accepted } = await cases.uninstallation()
  for (let attempt = 1; attempt <= 5; attempt++) {
    await runModuleOperation(accepted, withoutRemove)
    advanceClock(120_000)
  }
  expect(await Job.read(caller, accepted.jobId)).toMatchObject({ status: 'Completed' })
  expect((await storedTraces(id)).deployments).toHaveLength(1)
  await supervise(pick)
  expect(await storedTraces(id)).toEqual(noTraces)
})

test('fails an operation whose worker was killed five times', async () => {
  const { caller, id, accepted } = await cases.installation()
  for (let attempt = 1; attempt <= 5; attempt++) {
    await crashAtCall(6, 'before', () => runModuleOperation(accepted, pick))
    expireLease()
  }
  expect((await Job.read(caller, accepted.jobId)).status).toBe('Running')
  await runModuleOperation(accepted, pick)
  const result = { output: 'It was started 5 times without completing.' }
  expect(await Job.read(caller, accepted.jobId)).toMatchObject({ status: 'Failed', result })
  expect(await storedTraces(id)).toEqual(noTraces)
})

test.each(['installation', 'upgrade'] as const)('reverts an %s whose message is dead-lettered', async (name) => {
  const each = await cases[name]()
  await deadLetterModuleOperation(each.accepted, pick)
  await deadLetterModuleOperation(each.accepted, pick)
  await expectEnd({ ...each, status: 'Failed', version: name === 'upgrade' ? '1.0.0' : undefined })
})

test('completes an uninstallation whose message is dead-lettered', async () => {
  const each = await cases.uninstallation()
  await deadLetterModuleOperation(each.accepted, pick)
  await expectEnd(each)
})

test('a worker that has lost its lease removes nothing of its successor', async () => {
  const { caller, id, accepted } = await cases.installation()
  const [begun, deployed] = [Promise.withResolvers<void>(), Promise.withResolvers<never>()]
  const slowRuntime = async () => ({
    ...runtime,
    deploy: () => {
      begun.resolve()
      return deployed.promise
    },
  })
  const working = runModuleOperation(accepted, slowRuntime)
  await begun.promise
  expireLease()
  await runModuleOperation(accepted, pick)
  const installed = await storedTraces(id)
  deployed.reject(new RuntimeError('refused', 'It came too late.'))
  await working
  expect(await storedTraces(id)).toEqual(installed)
  expect(installed.deployments).toHaveLength(1)
  expect(await Job.read(caller, accepted.jobId)).toMatchObject({ status: 'Completed' })
})

test.each(['installation', 'upgrade'] as const)(
  'keeps the result of an %s that another worker has just completed',
  async (name) => {
    const each = await cases[name]()
    const hasOvertaken = beforeCommand(
      /TransactWrite/,
      async () => {
        expireLease()
        await runModuleOperation(each.accepted, pick)
      },
      8,
    )
    await runModuleOperation(each.accepted, pick)
    expect(hasOvertaken()).toBe(true)
    const { row, deployments } = await storedTraces(each.id)
    expect(deployments).toEqual([row?.deployment?.id])
    await expectEnd(each)
  },
)

test('fails an installation whose module record was deleted, and removes its deployment', async () => {
  const { caller, id, accepted } = await cases.installation()
  await transact([remove(keys.module(id))])
  await runModuleOperation(accepted, pick)
  const result = { output: 'Another operation has changed the module.' }
  expect(await Job.read(caller, accepted.jobId)).toMatchObject({ status: 'Failed', result })
  expect((await storedTraces(id)).deployments).toEqual([])
})

const names = Object.keys(cases) as (keyof typeof cases)[]
const kills = names.flatMap((name) => (['before', 'after'] as const).map((when) => [name, when] as const))

test.each(kills)('completes an %s whose worker was killed at any store call, %s its effect', async (name, when) => {
  let wasKilled = true
  for (let nth = 1; wasKilled; nth++) {
    const operation = await cases[name]()
    wasKilled = await crashAtCall(nth, when, () => runModuleOperation(operation.accepted, pick))
    // The message is redelivered immediately and after the lease.
    await runModuleOperation(operation.accepted, pick)
    expireLease()
    await runModuleOperation(operation.accepted, pick)
    await runModuleOperation(operation.accepted, pick)
    await expectEnd(operation)
  }
})

async function stoppableRuntime() {
  const { other: opened } = await restartRuntime()
  let isStopped = false
  const fail = () => Promise.reject(new RuntimeError('unavailable', 'The module host does not answer.'))
  const guardedRuntime: ModuleRuntime = {
    ...opened,
    deploy: (spec) => (isStopped ? fail() : opened.deploy(spec)),
    list: () => (isStopped ? fail() : opened.list()),
  }
  const stop = async () => {
    await waitFor('the module is deployed', async () => (await opened.list()).length > 0)
    isStopped = true
    await opened.close(1000)
  }
  return { stop, pick: async () => guardedRuntime }
}

test('does not fail modules that are being restarted when the platform stops', async () => {
  const { caller, id } = await runningModule({ configureMs: 1500 })
  const stoppable = await stoppableRuntime()
  const supervising = supervise(stoppable.pick)
  await stoppable.stop()
  await supervising
  expect((await Module.read(id)).state).toBe('Running')
  expect(await takeEventData(caller)).toEqual([])
  await supervise(pick)
  expect((await Module.read(id)).health).toBe('Healthy')
})

test('continues an installation after the platform has stopped and started', async () => {
  const [caller, id] = [await admin(), newModuleId()]
  const { reference } = await pushModule({ id, configureMs: 1500 })
  const request = await requestInstall(caller, reference)
  const stoppable = await stoppableRuntime()
  const installing = runModuleOperation(request, stoppable.pick)
  await stoppable.stop()
  await installing
  expect((await Job.read(caller, request.jobId)).status).toBe('Running')
  advanceClock(60_000)
  await runModuleOperation(request, pick)
  expect((await Job.read(caller, request.jobId)).status).toBe('Completed')
  expect((await storedTraces(id)).row?.state).toBe('Running')
})

test('an expired uninstallation does not stop a module that was installed again', async () => {
  const { caller, id } = await runningModule()
  const { reference } = await pushModule({ id })
  const removal = await requestUninstall(caller, id)
  let isOvertaken = false
  using _ = onStoreCall({
    before: async ({ command, input }) => {
      // The first worker is about to read the module that it stops.
      if (isOvertaken || !command.startsWith('Get') || input.Key.sk !== keys.module(id).sk) return
      isOvertaken = true
      expireLease()
      await runModuleOperation(removal, pick)
      expect(await storedTraces(id)).toEqual(noTraces)
      await runModuleOperation(await requestInstall(caller, reference), pick)
    },
  })
  await runModuleOperation(removal, pick)
  expect([isOvertaken, (await Module.read(id)).state]).toEqual([true, 'Running'])
  expect((await readActorLog(id)).hooks).not.toContain('stop')
})
