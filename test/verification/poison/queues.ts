import type { Caller } from '@platform/core/caller'
import { nowSeconds } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, query, replace } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import * as Batch from '@platform/core/jobs/batches/batch'
import * as Job from '@platform/core/jobs/job'
import { installSteps } from '@platform/core/modules/plans'
import { uninstall } from '@platform/core/modules/uninstall'
import { newOperation, queueChange } from '@platform/core/operations/operation'
import { commit } from '@platform/core/outbox/commit'
import { cloudEvent } from '@platform/core/webhooks/cloud-event'
import * as Webhook from '@platform/core/webhooks/webhook'
import { handler as handleDeadBatches } from '../../../functions/queue/batches-dead-letter.ts'
import { handler as handleBatches } from '../../../functions/queue/batches.ts'
import { handler as handleEvents } from '../../../functions/queue/events.ts'
import { handler as handleDeadInstalls } from '../../../functions/queue/installs-dead-letter.ts'
import { handler as handleInstalls } from '../../../functions/queue/installs.ts'
import { handler as handleModules } from '../../../functions/queue/modules.ts'
import { handler as handleWebhooks } from '../../../functions/queue/webhooks.ts'
import { readClusterCounters, readJobRecords, storeClusters } from '../../core/support/batches.ts'
import { scriptJob } from '../../core/support/jobs.ts'
import { deploymentOf, newModuleId, putModule, releaseFor } from '../../core/support/modules.ts'
import {
  auditEffect,
  readAuditEntries,
  commitEffects,
  drainOutbox,
  readPendingRecords,
} from '../../core/support/outbox.ts'
import { newCaller } from '../../support/fixtures.ts'
import { type Instance, runInstance } from '../../support/hostile-module.ts'
import { countEvents } from '../support/platform-state.ts'
import type { QueueHandler } from './deliver.ts'
import { receiver } from './servers.ts'

export interface QueueMessage {
  body: object
  /** The message fails if the store rejects calls that contain this id. */
  id: string
  isDoneOnce: () => Promise<boolean>
  hasFailedOnce?: () => Promise<boolean>
}

export interface Queue {
  name: string
  handler: QueueHandler
  deadLetterHandler?: QueueHandler
  newMessage: () => Promise<QueueMessage>
  newFailing?: () => Promise<QueueMessage>
  newDeleted: () => Promise<QueueMessage>
}

async function isNotifiedOnce({ organisationId, userId }: Caller, resource: string): Promise<boolean> {
  await drainOutbox(organisationId)
  const { items } = await query({ pk: keys.feed(organisationId, userId, '').pk })
  const details = await Promise.all(items.map(({ sk }) => get(keys.notification(organisationId, String(sk)))))
  return details.filter((detail) => detail?.['resource'] === resource).length === 1
}

const batches: Queue = {
  name: 'batches',
  handler: handleBatches,
  deadLetterHandler: handleDeadBatches,
  newMessage: async () => {
    const caller = await newCaller()
    const { organisationId } = caller
    const clusterIds = await storeClusters(caller, 2)
    const { batchId, jobIds } = await Batch.submit(caller, { jobs: clusterIds.map((id) => scriptJob(id)) })
    return {
      body: { organisationId, batchId },
      id: batchId,
      isDoneOnce: async () => {
        const counters = String(await readClusterCounters(caller, clusterIds))
        return counters === '1,1,1,1,1,1' && (await readJobRecords(caller, jobIds)).length === jobIds.length
      },
      hasFailedOnce: async () => {
        await drainOutbox(organisationId)
        const reasons = (await readJobRecords(caller, jobIds)).map(({ statusReason }) => statusReason)
        const { status, counts } = await Batch.read(caller, batchId)
        const isFailed = status === 'Finished' && counts.failed === jobIds.length
        return isFailed && String(reasons) === 'dead_lettered,dead_lettered' && (await isNotifiedOnce(caller, batchId))
      },
    }
  },
  newDeleted: async () => {
    const [organisationId, batchId] = [newId('org'), newId('batch')]
    const isDoneOnce = async () => (await get(keys.batch(organisationId, batchId))) === undefined
    return { body: { organisationId, batchId }, id: batchId, isDoneOnce }
  },
}

const noRecords = (organisationId: string) => async () => (await readPendingRecords(organisationId)).length === 0

const installs: Queue = {
  name: 'installs',
  handler: handleInstalls,
  deadLetterHandler: handleDeadInstalls,
  /** The removal of a failed module, of which nothing runs. */
  newMessage: async () => {
    const caller = await newCaller(undefined, 'PlatformAdmin')
    const { organisationId } = caller
    const moduleId = newModuleId()
    await putModule(releaseFor(moduleId), { state: 'Failed', organisationId })
    const { jobId } = await uninstall(caller, moduleId)
    const isDoneOnce = async () =>
      (await countEvents(organisationId, 'module.uninstalled')) === 1 &&
      (await Job.read(caller, jobId)).status === 'Completed'
    return { body: { organisationId, jobId }, id: jobId, isDoneOnce }
  },
  newFailing: async () => {
    const caller = await newCaller(undefined, 'PlatformAdmin')
    const { organisationId } = caller
    const release = releaseFor(newModuleId())
    const payload = { moduleId: release.moduleId, version: release.version }
    const operation = newOperation(caller, { type: 'ModuleInstall', payload, plan: { release }, steps: installSteps })
    await commit(caller, queueChange(operation))
    const hasFailedOnce = async () =>
      (await Job.read(caller, operation.id)).status === 'Failed' &&
      (await countEvents(organisationId, 'job.failed')) === 1
    const body = { organisationId, jobId: operation.id }
    return { body, id: operation.id, isDoneOnce: async () => true, hasFailedOnce }
  },
  newDeleted: async () => {
    const [organisationId, jobId] = [newId('org'), newId('job')]
    return { body: { organisationId, jobId }, id: jobId, isDoneOnce: noRecords(organisationId) }
  },
}

const events: Queue = {
  name: 'events',
  handler: handleEvents,
  newMessage: async () => {
    const caller = await newCaller()
    const { organisationId } = caller
    await commitEffects(caller, auditEffect('test.change'))
    const isDoneOnce = async () => (await readAuditEntries(caller)).length === 1 && noRecords(organisationId)()
    return { body: { organisationId }, id: organisationId, isDoneOnce }
  },
  newDeleted: async () => {
    const organisationId = newId('org')
    return { body: { organisationId }, id: organisationId, isDoneOnce: noRecords(organisationId) }
  },
}

/** Records a `cluster.deleted` event without a cluster. Returns the event and its outbox record. */
async function clusterDeleted(organisationId: string) {
  const clusterId = newId('clus')
  const data = { clusterId, name: 'berlin-1' }
  const effects = { events: [{ name: 'cluster.deleted' as const, subject: clusterId, data }] }
  await commitEffects({ kind: 'system', organisationId }, effects)
  const record = (await readPendingRecords(organisationId)).find((each) => each.events[0]?.name === 'cluster.deleted')
  const event = record?.events[0]
  if (record === undefined || event === undefined) throw new Error('The event was not recorded.')
  return { record, event }
}

async function newDelivery() {
  const caller = await newCaller()
  const { organisationId } = caller
  const hook = { url: `${receiver.url}/hook`, events: ['platform.cluster.deleted'] }
  const { id: webhookId } = await Webhook.create(caller, hook)
  const { event } = await clusterDeleted(organisationId)
  await drainOutbox(organisationId)
  const deliveries = () => receiver.requests.filter(({ headers }) => headers['webhook-id'] === event.id).length
  return { caller, deliveries, body: { organisationId, webhookId }, id: webhookId }
}

const webhooks: Queue = {
  name: 'webhooks',
  handler: handleWebhooks,
  newMessage: async () => {
    const { deliveries, ...message } = await newDelivery()
    return { ...message, isDoneOnce: async () => deliveries() === 1 }
  },
  newDeleted: async () => {
    const { deliveries, caller, ...message } = await newDelivery()
    await Webhook.remove(caller, message.id)
    return { ...message, isDoneOnce: async () => deliveries() === 0 }
  },
}

const eventIds = (body: Buffer): string[] => JSON.parse(body.toString()).events.map(({ id }: { id: string }) => id)

export const instance: Instance = await runInstance((_, response) => {
  const handledIds = eventIds(instance.requests.at(-1)?.body ?? Buffer.of())
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ handled: handledIds, failed: [] }))
})

const modules: Queue = {
  name: 'modules',
  handler: handleModules,
  newMessage: async () => {
    const [organisationId, moduleId] = [newId('org'), newModuleId()]
    const release = releaseFor(moduleId)
    await putModule(release, { deployment: { ...deploymentOf(release), handle: instance.deployment.handle } })
    const { record, event } = await clusterDeleted(organisationId)
    const storedState = {
      event: JSON.stringify(cloudEvent(event, record)),
      publisher: 'key tests',
      ttl: nowSeconds() + 3600,
    }
    await transact([replace(keys.moduleEvent(moduleId, event.id), storedState)])
    const isDoneOnce = async () => {
      const received = instance.requests.flatMap(({ body }) => eventIds(body)).filter((id) => id === event.id)
      return received.length === 1 && (await query(keys.moduleEvents(moduleId))).items.length === 0
    }
    return { body: { organisationId, moduleId }, id: moduleId, isDoneOnce }
  },
  newDeleted: async () => {
    const [organisationId, moduleId] = [newId('org'), newModuleId()]
    const isDoneOnce = async () => (await query(keys.moduleEvents(moduleId))).items.length === 0
    return { body: { organisationId, moduleId }, id: moduleId, isDoneOnce }
  },
}

export const queues: readonly Queue[] = [batches, installs, events, webhooks, modules]
