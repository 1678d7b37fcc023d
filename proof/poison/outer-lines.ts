import { type Caller } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { cloudEvent } from '@platform/core/webhooks/cloud-event'
import { nowSeconds } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { query, replace } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { installSteps } from '@platform/core/modules/plans'
import { uninstall } from '@platform/core/modules/uninstall'
import { newOperation, queueChange } from '@platform/core/operations/operation'
import * as Webhook from '@platform/core/webhooks/webhook'
import { handler as modulesConsumer } from '../../functions/queue/modules.ts'
import { handler as updatesConsumer } from '../../functions/queue/updates.ts'
import { handler as buriedUpdates } from '../../functions/queue/updates-dead-letter.ts'
import { handler as webhooksConsumer } from '../../functions/queue/webhooks.ts'
import { settle, tell } from '../../test/core/support/books.ts'
import { deploymentOf, newModuleId, putModule, releaseFor } from '../../test/core/support/modules.ts'
import { callerOf } from '../../test/support/world.ts'
import { recordsOf, timesTold } from '../support/records.ts'
import { type Errand, type Line } from './line.ts'
import { people } from './lines.ts'
import { type Outside } from './outside.ts'

/** Queues whose messages lead out of the platform, or change the platform itself. */

const inTurn = async <Item>(count: number, make: () => Promise<Item>): Promise<Item[]> => {
  const items: Item[] = []
  while (items.length < count) items.push(await make())
  return items
}

/** The removal of a module that has failed long ago: nothing runs of it. */
async function removalErrand(): Promise<Errand> {
  const caller = await callerOf(undefined, 'PlatformAdmin')
  const moduleId = newModuleId()
  await putModule(releaseFor(moduleId), { state: 'Failed', organisationId: caller.organisationId })
  const { jobId } = await uninstall(caller, moduleId)
  const isDoneOnce = async () => {
    const isTold = (await timesTold(caller.organisationId, 'module.uninstalled')) === 1
    return isTold && (await Job.read(caller, jobId)).status === 'Completed'
  }
  return { message: { organisationId: caller.organisationId, jobId }, id: jobId, isDoneOnce }
}

export const updates: Line = {
  name: 'updates',
  consumer: updatesConsumer,
  undertaker: buriedUpdates,
  // One after the other: they all change the one item of paths.
  errands: (count) => inTurn(count, removalErrand),
  doomed: async () => {
    const caller = await callerOf(undefined, 'PlatformAdmin')
    const { organisationId } = caller
    const release = releaseFor(newModuleId())
    const { moduleId, version } = release
    const asked = {
      type: 'ModuleInstall' as const,
      payload: { moduleId, version },
      plan: { release },
      steps: installSteps,
    }
    const operation = newOperation(caller, asked)
    await commit(caller, queueChange(operation))
    const hasFailedOnce = async () => {
      const { status } = await Job.read(caller, operation.id)
      return status === 'Failed' && (await timesTold(organisationId, 'job.failed')) === 1
    }
    const message = { organisationId, jobId: operation.id }
    return { message, id: operation.id, isDoneOnce: async () => true, hasFailedOnce }
  },
  deleted: async () => {
    const [organisationId, jobId] = [newId('org'), newId('job')]
    const isDoneOnce = async () => (await recordsOf(organisationId)).length === 0
    return { message: { organisationId, jobId }, id: jobId, isDoneOnce }
  },
}

const timesHeard = ({ heard }: Outside, id: string): number => heard.filter((each) => each === id).length

const happened = (organisationId: string) => {
  const clusterId = newId('clus')
  const event = { name: 'cluster.deleted' as const, subject: clusterId, data: { clusterId, name: 'berlin-1' } }
  return tell({ kind: 'system', organisationId }, { events: [event] })
}

export const webhooksTo = (outside: Outside): Line => {
  const errand = async (caller: Caller): Promise<Errand & { isUnheard: () => Promise<boolean> }> => {
    const { organisationId } = caller
    const { id: webhookId } = await Webhook.create(caller, {
      url: outside.receiverUrl,
      events: ['platform.cluster.deleted'],
    })
    await happened(organisationId)
    const records = await recordsOf(organisationId)
    const record = records.find(({ events }) => events[0]?.name === 'cluster.deleted')
    await settle(organisationId)
    const times = () => timesHeard(outside, record?.events[0]?.id ?? '')
    return {
      message: { organisationId, webhookId },
      id: webhookId,
      isDoneOnce: async () => times() === 1,
      isUnheard: async () => times() === 0,
    }
  }
  return {
    name: 'webhooks',
    consumer: webhooksConsumer,
    errands: async (count) => Promise.all((await people(count)).map(errand)),
    deleted: async () => {
      const caller = await callerOf()
      const { message, id, isUnheard } = await errand(caller)
      await Webhook.remove(caller, id)
      return { message, id, isDoneOnce: isUnheard }
    },
  }
}

export const modulesAt = (outside: Outside): Line => {
  const errand = async (): Promise<Errand> => {
    const [organisationId, moduleId] = [newId('org'), newModuleId()]
    const release = releaseFor(moduleId)
    await putModule(release, { deployment: { ...deploymentOf(release), handle: outside.socketPath } })
    await happened(organisationId)
    const [record] = await recordsOf(organisationId)
    const [event] = record?.events ?? []
    if (record === undefined || event === undefined) throw new Error('Nothing has happened.')
    const stored = { event: JSON.stringify(cloudEvent(event, record)), ttl: nowSeconds() + 3600 }
    await transact([replace(keys.moduleEvent(moduleId, event.id), stored)])
    const isDoneOnce = async () => {
      const waiting = await query(keys.moduleEvents(moduleId))
      return timesHeard(outside, event.id) === 1 && waiting.items.length === 0
    }
    return { message: { organisationId, moduleId }, id: moduleId, isDoneOnce }
  }
  return {
    name: 'modules',
    consumer: modulesConsumer,
    errands: (count) => inTurn(count, errand),
    deleted: async () => {
      const [organisationId, moduleId] = [newId('org'), newModuleId()]
      const isDoneOnce = async () => (await query(keys.moduleEvents(moduleId))).items.length === 0
      return { message: { organisationId, moduleId }, id: moduleId, isDoneOnce }
    },
  }
}
