import {
  requestInstall,
  requestUninstall,
  install,
  noTraces,
  pick,
  takeEvents,
  storedTraces,
} from './module-platform.ts'
import { pushModule } from './module-images.ts'
import { expect } from 'vitest'
import { type Caller } from '@platform/core/caller'
import * as Job from '@platform/core/jobs/job'
import { type OperationReference } from '@platform/core/aws/queues'
import { runModuleOperation } from './module-operations.ts'
import { supervise } from '@platform/worker/modules/supervise'
import { newCaller } from '../../support/fixtures.ts'
import { newModuleId } from './modules.ts'
import { onStoreCall } from '../../support/store-calls.ts'

/** Operations on modules before their worker has begun, and what is expected of their ends. */

const admin = () => newCaller(undefined, 'PlatformAdmin')

/** What is accepted, and as what it has to end. */
export interface Case {
  caller: Caller
  id: string
  accepted: OperationReference
  /** The version that has to run in the end; none where the module is not to be there. */
  version: string | undefined
  status: 'Completed' | 'Failed'
}

export const cases = {
  async installation(): Promise<Case> {
    const [caller, id] = [await admin(), newModuleId()]
    const { reference } = await pushModule({ id })
    return { caller, id, accepted: await requestInstall(caller, reference), version: '1.0.0', status: 'Completed' }
  },
  async 'installation that fails'(): Promise<Case> {
    const [caller, id] = [await admin(), newModuleId()]
    const { reference } = await pushModule({ id, throwsIn: 'start' })
    return { caller, id, accepted: await requestInstall(caller, reference), version: undefined, status: 'Failed' }
  },
  async upgrade(): Promise<Case> {
    const [caller, id] = [await admin(), newModuleId()]
    await install(caller, { id })
    await takeEvents(caller)
    const { reference } = await pushModule({ id, version: '2.0.0' })
    return { caller, id, accepted: await requestInstall(caller, reference), version: '2.0.0', status: 'Completed' }
  },
  async 'upgrade that fails'(): Promise<Case> {
    const [caller, id] = [await admin(), newModuleId()]
    await install(caller, { id })
    await takeEvents(caller)
    const { reference } = await pushModule({ id, version: '2.0.0', throwsIn: 'configure' })
    return { caller, id, accepted: await requestInstall(caller, reference), version: '1.0.0', status: 'Failed' }
  },
  async uninstallation(): Promise<Case> {
    const [caller, id] = [await admin(), newModuleId()]
    await install(caller, { id })
    await takeEvents(caller)
    return { caller, id, accepted: await requestUninstall(caller, id), version: undefined, status: 'Completed' }
  },
}

const ends = new Set(['job.completed', 'job.failed', 'module.installed', 'module.failed', 'module.uninstalled'])

/** The end is what it had to be, whole, told once, and nothing of the way there is left. */
export async function expectEnd({ caller, id, accepted, version, status }: Case): Promise<void> {
  expect((await Job.read(caller, accepted.jobId)).status).toBe(status)
  const told = (await takeEvents(caller)).filter(({ name, data }) => ends.has(name) && data.jobId === accepted.jobId)
  expect(told).toHaveLength(2)
  // What is left of a worker that was killed is cleared away at the next heartbeat.
  await supervise(pick)
  const traces = await storedTraces(id)
  if (version === undefined) return expect(traces).toEqual(noTraces)
  const { row, claim, deployments } = traces
  expect(row).toMatchObject({ state: 'Running', release: { version } })
  expect(row?.jobId).toBeUndefined()
  expect(deployments).toEqual([row?.deployment?.id])
  expect(JSON.parse(String(claim)).deployment).toEqual(row?.deployment)
  return undefined
}

/** A worker whose connection to the store ends at its n-th call: before that is made, or before it hears the answer. */
export async function crashAtStoreCall(
  accepted: OperationReference,
  n: number,
  when: 'before' | 'after',
): Promise<boolean> {
  let calls = 0
  const cut = async () => {
    if (when === 'after' ? calls >= n : ++calls >= n) throw new Error('The connection has ended.')
  }
  using _ = onStoreCall(
    when === 'before'
      ? { before: cut }
      : {
          before: async () => {
            if (calls >= n) throw new Error('The connection has ended.')
            calls++
          },
          after: cut,
        },
  )
  await runModuleOperation(accepted, pick).catch(() => undefined)
  return calls >= n
}
