import * as platform from './module-platform.ts'
import { pushModule, type PushedModule } from './module-images.ts'
import { expect } from 'vitest'
import type { Caller } from '@platform/core/caller'
import * as Job from '@platform/core/jobs/job'
import type { JobReference } from '@platform/core/aws/queues'
import { supervise } from '@platform/worker/modules/supervise'
import { newCaller } from '../../support/fixtures.ts'
import { newModuleId } from './modules.ts'

export interface Case {
  caller: Caller
  id: string
  accepted: JobReference
  /** The version that runs at the end; undefined if the module is not installed. */
  version: string | undefined
  status: 'Completed' | 'Failed'
}

async function requestInstallation(
  { isUpgrade = false, ...module }: Partial<PushedModule> & { isUpgrade?: boolean },
  end: Pick<Case, 'version' | 'status'>,
): Promise<Case> {
  const { caller, id } = isUpgrade
    ? await platform.runningModule()
    : { caller: await newCaller(undefined, 'PlatformAdmin'), id: newModuleId() }
  const { reference } = await pushModule({ id, ...(isUpgrade && { version: '2.0.0' }), ...module })
  return { caller, id, accepted: await platform.requestInstall(caller, reference), ...end }
}

export const cases = {
  installation: () => requestInstallation({}, { version: '1.0.0', status: 'Completed' }),
  'installation that fails': () => requestInstallation({ throwsIn: 'start' }, { version: undefined, status: 'Failed' }),
  upgrade: () => requestInstallation({ isUpgrade: true }, { version: '2.0.0', status: 'Completed' }),
  'upgrade that fails': () =>
    requestInstallation({ isUpgrade: true, throwsIn: 'configure' }, { version: '1.0.0', status: 'Failed' }),
  async uninstallation(): Promise<Case> {
    const { caller, id } = await platform.runningModule()
    const accepted = await platform.requestUninstall(caller, id)
    return { caller, id, accepted, version: undefined, status: 'Completed' }
  },
}

const finalEventNames = new Set([
  'job.completed',
  'job.failed',
  'module.installed',
  'module.failed',
  'module.uninstalled',
])

/** Expects the operation to have ended exactly once, and no other deployment to exist. */
export async function expectEnd({ caller, id, accepted, version, status }: Case): Promise<void> {
  expect((await Job.read(caller, accepted.jobId)).status).toBe(status)
  const events = await platform.takeEvents(caller)
  expect(events.filter(({ name, data }) => finalEventNames.has(name) && data.jobId === accepted.jobId)).toHaveLength(2)
  // Supervision removes the deployments of a killed worker.
  await supervise(platform.pick)
  const traces = await platform.storedTraces(id)
  if (version === undefined) return expect(traces).toEqual(platform.noTraces)
  const { row, claim, deployments } = traces
  expect(row).toMatchObject({ state: 'Running', release: { version } })
  expect(row?.jobId).toBeUndefined()
  expect(deployments).toEqual([row?.deployment?.id])
  expect(JSON.parse(String(claim)).deployment).toEqual(row?.deployment)
  return undefined
}
