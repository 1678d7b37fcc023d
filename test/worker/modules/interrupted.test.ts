// First: it sets the allowed outbound addresses, which core reads at import.
import {
  requestInstall,
  requestUninstall,
  openRuntime,
  setMood,
  noTraces,
  pick,
  runningModule,
  runtime,
  readActorLog,
  takeEventData,
  storedTraces,
} from '../../core/support/module-platform.ts'
import { cases, expectEnd } from '../../core/support/module-cases.ts'
import { pushModule } from '../../core/support/module-images.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import * as keys from '@platform/core/db/keys'
import * as Job from '@platform/core/jobs/job'
import * as Module from '@platform/core/modules/module'
import { holdLease } from '@platform/core/operations/lease'
import { operationLeaseMs, LeaseLost } from '@platform/core/operations/operation'
import { supervise } from '@platform/worker/modules/supervise'
import { type ModuleRuntime, RuntimeError } from '@platform/worker/runtimes/port'
import { waitFor } from '../../support/wait-for.ts'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { isLong, sampled, stride } from '../../support/long.ts'
import { crashAtCall, onStoreCall } from '../../support/store-calls.ts'
import { runModuleOperation } from '../../core/support/module-operations.ts'
import { newModuleId } from '../../core/support/modules.ts'
import { advanceClock } from '../../support/clock.ts'
import { claimed, pendingOperation } from '../../core/support/operations.ts'

await bootstrapPlatform()

const expireLease = () => advanceClock(operationLeaseMs + 1)
const names = Object.keys(cases) as (keyof typeof cases)[]
const kills = names.flatMap((name) => (['before', 'after'] as const).map((when) => [name, when] as const))

test.each(sampled(kills))(
  'completes an %s whose worker was killed at any store call, %s its effect',
  async (name, when) => {
    let wasKilled = true
    for (let n = 1; wasKilled; n += stride) {
      const operation = await cases[name]()
      wasKilled = await crashAtCall(n, when, () => runModuleOperation(operation.accepted, pick))
      // The message is redelivered immediately and after the lease.
      await runModuleOperation(operation.accepted, pick)
      expireLease()
      await runModuleOperation(operation.accepted, pick)
      await runModuleOperation(operation.accepted, pick)
      await expectEnd(operation)
    }
  },
  240_000,
)

test.each(sampled(names))('runs an %s once if several workers get its message, at once and later', async (name) => {
  const operation = await cases[name]()
  await Promise.all([1, 2, 3, 4].map(() => runModuleOperation(operation.accepted, pick)))
  await runModuleOperation(operation.accepted, pick)
  await expectEnd(operation)
})

test.each(sampled(names))('runs an %s once if its worker outlives its lease', async (name) => {
  const operation = await cases[name]()
  const slow = runModuleOperation(operation.accepted, pick)
  expireLease()
  await Promise.all([slow, runModuleOperation(operation.accepted, pick)])
  expireLease()
  await runModuleOperation(operation.accepted, pick)
  await expectEnd(operation)
})

const failpoints = {
  installation: ['operation.begun', 'module.verified', 'module.deployed', 'module.loaded', 'module.published'],
  'installation that fails': ['module.compensated'],
  upgrade: ['module.deployed', 'module.loaded', 'module.published'],
  'upgrade that fails': ['module.compensated'],
  uninstallation: ['module.stopped', 'module.forgotten'],
} as const

const interruptions = names.flatMap((name) => failpoints[name].map((failpoint) => [name, failpoint] as const))
const isFirstUse = ([, failpoint]: (typeof interruptions)[number], index: number): boolean =>
  interruptions.findIndex((other) => other[1] === failpoint) === index

test.each(interruptions.filter((row, index) => isLong || isFirstUse(row, index)))(
  'resumes an %s that stops at %s',
  async (name, failpoint) => {
    const operation = await cases[name]()
    vi.stubEnv('PLAT_FAILPOINT', `${failpoint}=throw`)
    vi.resetModules()
    // The failpoint is read at import: this worker has its own module instances.
    const failing = await import('../../core/support/module-operations.ts')
    vi.unstubAllEnvs()
    await failing.runModuleOperation(operation.accepted, pick).catch(() => undefined)
    const isDone = failpoint === 'module.published'
    const { status } = await Job.read(operation.caller, operation.accepted.jobId)
    expect(status).toBe(isDone ? 'Completed' : 'Running')
    expireLease()
    await runModuleOperation(operation.accepted, pick)
    await expectEnd(operation)
  },
)

/** A runtime that can be shut down while it is in use, as when the platform stops. */
async function stoppableRuntime() {
  const opened = await openRuntime(newModuleId())
  onTestFinished(() => opened.close(0))
  let isStopped = false
  const fail = () => Promise.reject(new RuntimeError('unavailable', 'The module host does not answer.'))
  const guarded: ModuleRuntime = {
    ...opened,
    deploy: (spec) => (isStopped ? fail() : opened.deploy(spec)),
    list: () => (isStopped ? fail() : opened.list()),
  }
  const stop = async () => {
    await waitFor('the module is deployed', async () => (await opened.list()).length > 0)
    isStopped = true
    await opened.close(1000)
  }
  return { stop, pick: async () => guarded }
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
  const [caller, id] = [await newCaller(undefined, 'PlatformAdmin'), newModuleId()]
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

/** A health check that has its responses, and waits before it records them. Returns a function that resumes it. */
async function pausedHealthCheck() {
  const [responded, resumed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slow: ModuleRuntime = {
    ...runtime,
    request: async (...input) => {
      const response = await runtime.request(...input)
      responded.resolve()
      await resumed.promise
      return response
    },
  }
  const supervising = supervise(async () => slow)
  await responded.promise
  return async () => {
    resumed.resolve()
    await supervising
  }
}

test('records no health check that ends after the uninstallation', async () => {
  const { caller, id } = await runningModule()
  await setMood(id, { status: 'Unhealthy' })
  const resume = await pausedHealthCheck()
  await runModuleOperation(await requestUninstall(caller, id), pick)
  await takeEventData(caller)
  await resume()
  expect(await storedTraces(id)).toEqual(noTraces)
  expect(await takeEventData(caller)).toEqual([])
})

test('records no health check of the previous release', async () => {
  const { caller, id } = await runningModule()
  await setMood(id, { status: 'Unhealthy' })
  const resume = await pausedHealthCheck()
  const { reference } = await pushModule({ id, version: '2.0.0' })
  await runModuleOperation(await requestInstall(caller, reference), pick)
  await resume()
  expect(await Module.read(id)).toMatchObject({ version: '2.0.0', health: 'Healthy', checks: [{ status: 'Healthy' }] })
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

async function heldLease() {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  return { caller, operation, lease: holdLease(await claimed(operation)) }
}

test('continues with the next step after a lease renewal has failed', async () => {
  const { caller, operation, lease } = await heldLease()
  {
    using _ = onStoreCall({
      before: async () => {
        throw new Error('The connection has ended.')
      },
    })
    await expect(lease.renew()).rejects.toThrow('The connection has ended.')
  }
  await lease.startStep('deploy')
  expect((await Job.read(caller, operation.id)).steps).toMatchObject([{ status: 'Running' }, { status: 'Pending' }])
})

test('rejects every write of a worker that has lost its lease', async () => {
  const { operation, lease } = await heldLease()
  expireLease()
  await claimed(operation)
  await expect(lease.renew()).rejects.toThrow(LeaseLost)
  await expect(lease.startStep('deploy')).rejects.toThrow(LeaseLost)
  await expect(lease.releaseForRetry(1000, 'It failed.')).rejects.toThrow(LeaseLost)
})
