// First: it sets what the platform may reach, which core reads when it is imported.
import {
  requestInstall,
  requestUninstall,
  setMood,
  noTraces,
  pick,
  runningModule,
  runtime,
  readActorLog,
  takeEventData,
  storedTraces,
} from '../../core/support/module-platform.ts'
import { pushModule } from '../../core/support/module-images.ts'
import { expect, test } from 'vitest'
import * as keys from '@platform/core/db/keys'
import * as Module from '@platform/core/modules/module'
import { operationLeaseMs } from '@platform/core/operations/operation'
import { supervise } from '@platform/worker/modules/supervise'
import { type ModuleRuntime } from '@platform/worker/runtimes/port'
import { bootstrapPlatform } from '../../support/fixtures.ts'
import { runModuleOperation } from '../../core/support/module-operations.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { advanceClock } from '../../core/support/notifications.ts'

await bootstrapPlatform()

/** A tick that has asked a module how it is, and does nothing with the answers until it is let go on. */
async function lateTick() {
  const [asked, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slow: ModuleRuntime = {
    ...runtime,
    request: async (...call) => {
      const answer = await runtime.request(...call)
      asked.resolve()
      await goOn.promise
      return answer
    },
  }
  const ticking = supervise(async () => slow)
  await asked.promise
  return async () => {
    goOn.resolve()
    await ticking
  }
}

test('a beat that ends after its module was uninstalled leaves nothing of it, and tells nothing', async () => {
  const { caller, id } = await runningModule()
  await setMood(id, { status: 'Unhealthy' })
  const goOn = await lateTick()
  await runModuleOperation(await requestUninstall(caller, id), pick)
  await takeEventData(caller)
  await goOn()
  expect(await storedTraces(id)).toEqual(noTraces)
  expect(await takeEventData(caller)).toEqual([])
})

test('a beat of the release before does not say how the next one is', async () => {
  const { caller, id } = await runningModule()
  await setMood(id, { status: 'Unhealthy' })
  const goOn = await lateTick()
  const { reference } = await pushModule({ id, version: '2.0.0' })
  await runModuleOperation(await requestInstall(caller, reference), pick)
  await goOn()
  expect(await Module.read(id)).toMatchObject({ version: '2.0.0', health: 'Healthy', checks: [{ status: 'Healthy' }] })
})

/** Nobody waits as long as jobs may take. */
const impatient = async (): Promise<ModuleRuntime> => ({
  ...runtime,
  request: (deployment, asked, limits) =>
    runtime.request(deployment, asked, { ...limits, timeoutMs: Math.min(limits.timeoutMs, 1000) }),
})

test('a job that never ends misses every beat, as one that fails does', async () => {
  const { caller, id } = await runningModule({ jobs: { work: 60 } })
  await setMood(id, { jobs: 'hang' })
  await supervise(impatient)
  advanceClock(60_000)
  await supervise(impatient)
  expect((await readActorLog(id)).jobs).toHaveLength(1)
  expect((await Module.read(id)).health).toBe('Unhealthy')
  expect((await takeEventData(caller)).map(({ name }) => name)).toEqual([
    'module.heartbeat_missed',
    'module.health_changed',
  ])
})

test('whoever uninstalls slower than its claim leaves alone what was installed again meanwhile', async () => {
  const { caller, id } = await runningModule()
  const { reference } = await pushModule({ id })
  const removal = await requestUninstall(caller, id)
  let isOvertaken = false
  using _ = onStoreCall({
    before: async ({ command, input }) => {
      // It is just going to look at the module that it is to stop.
      if (isOvertaken || !command.startsWith('Get') || input.Key.sk !== keys.module(id).sk) return
      isOvertaken = true
      advanceClock(operationLeaseMs + 1)
      await runModuleOperation(removal, pick)
      expect(await storedTraces(id)).toEqual(noTraces)
      await runModuleOperation(await requestInstall(caller, reference), pick)
    },
  })
  await runModuleOperation(removal, pick)
  expect([isOvertaken, (await Module.read(id)).state]).toEqual([true, 'Running'])
  expect((await readActorLog(id)).hooks).not.toContain('stop')
})
