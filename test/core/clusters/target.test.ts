import type { Target } from '@platform/contract/target'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import { labelClusters, moveClusters } from '@platform/core/clusters/bulk'
import * as Site from '@platform/core/clusters/site'
import { resolve } from '@platform/core/clusters/target'
import * as keys from '@platform/core/db/keys'
import { batchPut, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Batch from '@platform/core/jobs/batches/batch'
import * as Job from '@platform/core/jobs/job'
import { listClusters } from '@platform/core/jobs/last-job'
import { nameAttributes } from '@platform/core/clusters/record'
import { version } from '@platform/core/lib/version'
import * as SavedFilter from '@platform/core/accounts/saved-filter'
import { beforeAll, expect, test } from 'vitest'
import {
  bootstrapPlatform,
  enrolledCluster,
  errorCodeOf,
  errorOf,
  newCaller,
  requestErrorCode,
} from '../../support/fixtures.ts'
import { beforeCommand } from '../../support/store-calls.ts'
import { readJobRecords, runProjections, storeClusters, submitAndExpand } from '../support/batches.ts'
import { readAuditEntries } from '../support/outbox.ts'
import { measureUsage } from '../support/usage.ts'

beforeAll(bootstrapPlatform)

const script = { type: 'InvokeScript', payload: { script: 'true' } }
const prod = { selector: 'env=prod' }

const changeByHttp = (caller: Caller, path: 'labels' | 'site', body: object) =>
  requestErrorCode('clusters', `POST /api/v1/clusters/${path}`, [caller, 'OrgAdmin'], body)

async function fleet() {
  const caller = await newCaller()
  const ids: string[] = []
  for (const env of ['prod', 'test', 'prod'])
    ids.push((await Cluster.register(caller, { name: `${env}-${ids.length}`, type: 'Hypervisor', labels: { env } })).id)
  return { caller, ids }
}

const filterTarget = async (caller: Caller, filter: Record<string, unknown>, context = 'clusters') => ({
  savedFilterId: (await SavedFilter.create(caller, { name: 'saved', context, filter })).id,
})

test('resolves each kind of target to the clusters of the organisation, newest first', async () => {
  const { caller, ids } = await fleet()
  const [firstId = '', , lastId = ''] = ids
  const { cluster } = await enrolledCluster(caller)
  const allIds = [cluster.id, ...ids.toReversed()]
  for (const [target, expected] of [
    [{ all: true }, allIds],
    [prod, [lastId, firstId]],
    [{ clusterIds: [firstId, lastId, firstId] }, [firstId, lastId]],
    [await filterTarget(caller, {}), allIds],
    [await filterTarget(caller, { status: 'Healthy', type: 'Hypervisor' }), [cluster.id]],
    [await filterTarget(caller, { selector: 'env', search: 'PROD-0' }), [firstId]],
    [{ selector: 'none' }, []],
  ] satisfies [Target, string[]][]) {
    const { clusterIds, names, resolvedCount } = await resolve(caller, { target, includeIds: true })
    expect([target, clusterIds, resolvedCount, names.length]).toEqual([
      target,
      expected,
      expected.length,
      expected.length,
    ])
  }
  const byStatus = { Healthy: 1, Degraded: 0, Pending: 3, Offline: 0 }
  expect(await resolve(caller, { target: { all: true }, includeStatus: true })).toMatchObject({ byStatus })
  const manyIds = await storeClusters(caller, 101)
  expect((await resolve(caller, { target: { clusterIds: manyIds } })).resolvedCount).toBe(101)
  const foreignIds = (await fleet()).ids
  for (const clusterIds of [foreignIds, [...manyIds, ...foreignIds], ['x'], [newId('clus')]])
    expect(await errorCodeOf(resolve(caller, { target: { clusterIds } }))).toBe('cluster_forbidden')
  const otherTarget = await filterTarget(caller, {}, 'jobs')
  expect(await errorCodeOf(resolve(caller, { target: otherTarget }))).toBe('filter_not_applicable')
})

test('submits one job to each cluster of a target, unless their number changed or is 0', async () => {
  const { caller, ids } = await fleet()
  const payload = { script: `#!/bin/sh\n# ${'x'.repeat(200_000)}`, timeoutSeconds: 7 }
  const { jobIds, resolvedCount } = await submitAndExpand(caller, {
    target: prod,
    type: 'InvokeScript',
    payload,
    expectedCount: 2,
    deliverWithinSeconds: 60,
  })
  expect([resolvedCount, jobIds.length]).toEqual([2, 2])
  const jobs = await readJobRecords(caller, jobIds)
  const { items } = await listClusters(caller, { page: 1, pageSize: 10, include: 'lastJob' })
  expect(items.map(({ lastJob }) => [lastJob?.id, lastJob?.status, lastJob?.title])).toEqual([
    [jobIds[0], 'Queued', 'Script'],
    [undefined, undefined, undefined],
    [jobIds[1], 'Queued', 'Script'],
  ])
  expect(jobs.map(({ clusterId }) => clusterId)).toEqual([ids[2], ids[0]])
  for (const id of jobIds) expect((await Job.read(caller, id)).payload).toEqual(payload)
  const targetError = await errorOf(Batch.submit(caller, { target: prod, ...script, expectedCount: 3 }))
  expect(targetError).toMatchObject({ code: 'target_changed', extra: { resolvedCount: 2 } })
  expect(await errorCodeOf(Batch.submit(caller, { target: { selector: 'none' }, ...script }))).toBe('validation_failed')
  const unknownType = { target: prod, ...script, type: 'X' }
  expect(await errorCodeOf(Batch.submit(caller, unknownType))).toBe('unknown_job_type')
})

test('resolves a target again if a cluster is removed before its jobs are stored', async () => {
  const { caller, ids } = await fleet()
  const wasRemoved = beforeCommand(/BatchGet/, () => Cluster.remove(caller, ids[0] ?? ''))
  expect((await Batch.submit(caller, { target: prod, ...script })).resolvedCount).toBe(1)
  expect(wasRemoved()).toBe(true)
})

test('accepts a large script for 500 clusters once, and rejects 501 clusters with their number', async () => {
  const caller = await newCaller()
  await storeClusters(caller, 500)
  const payload = { script: `#!/bin/sh\n# ${'x'.repeat(200_000)}` }
  const submission = { target: { all: true }, type: 'InvokeScript', payload } as const
  const { result, usage } = await measureUsage(() => Batch.submit(caller, submission))
  expect(result.resolvedCount).toBe(500)
  expect(usage.writeUnits).toBeLessThanOrEqual(75)
  await storeClusters(caller, 1)
  const tooMany = { code: 'batch_limit_exceeded', extra: { resolvedCount: 501, limit: 500 } }
  expect(await errorOf(Batch.submit(caller, submission))).toMatchObject(tooMany)
  for (const [path, change] of [
    ['labels', { set: { env: 'x' } }],
    ['site', { siteId: null }],
  ] as const)
    expect(await changeByHttp(caller, path, { target: { all: true }, ...change })).toBe(tooMany.code)
})

test('rejects a relay update of more than 20,000 clusters', async () => {
  const caller = await newCaller()
  const ids = Array.from({ length: 20_001 }, () => newId('clus'))
  await batchPut(ids.map((id) => ({ ...keys.clusterName(caller.organisationId, id), ...nameAttributes(id, id) })))
  const current = JSON.stringify({ version, relay: { sha256: 'a'.repeat(64), signature: 'c2ln' } })
  await update(keys.updateState(), { set: { current } })
  const relayUpdate = ['clusters', 'POST /api/v1/relay-updates', [caller, 'OrgAdmin']] as const
  expect(await requestErrorCode(...relayUpdate, { target: { all: true } })).toBe('batch_limit_exceeded')
})

test('labels the clusters of a target, repeatably and together with other changes', async () => {
  const caller = await newCaller()
  const [id = '', ...others] = await storeClusters(caller, 200)
  await labelClusters(caller, { target: { clusterIds: [id] }, set: { env: 'test', old: '1' } })
  const request = { target: { all: true as const }, set: { env: 'prod' }, remove: ['old'] }
  beforeCommand(/Transact/, () => Cluster.update(caller, id, { labels: { added: '1' } }))
  expect(await labelClusters(caller, request)).toEqual({ resolvedCount: 200, changedCount: 200 })
  expect(await labelClusters(caller, request)).toEqual({ resolvedCount: 200, changedCount: 0 })
  expect((await Cluster.read(caller, id)).labels).toEqual({ env: 'prod', added: '1', 'platform/type': 'Hypervisor' })
  expect((await resolve(caller, { target: prod })).resolvedCount).toBe(200)
  await runProjections(caller)
  const details = (await readAuditEntries(caller))
    .filter(({ action }) => action === 'cluster.label')
    .map((entry) => entry.detail)
  expect(details).toContainEqual(expect.stringMatching(/^90 clusters \(clus_\w+, .* and 85 more\): env=prod, -old$/))
  const maxLabels = Object.fromEntries(Array.from({ length: 32 }, (_, index) => [`k${index}`, '']))
  const tooMany = { target: { clusterIds: others.slice(0, 1) }, set: maxLabels }
  expect(await changeByHttp(caller, 'labels', tooMany)).toBe('limit_reached')
})

test('moves the clusters of a target to a site and away, repeatably and together with other changes', async () => {
  const caller = await newCaller()
  const [from, to] = [await Site.create(caller, { name: 'from' }), await Site.create(caller, { name: 'to' })]
  const [id = '', ...others] = await storeClusters(caller, 70)
  await Cluster.update(caller, id, { siteId: from.id })
  const request = { target: { all: true as const }, siteId: to.id }
  beforeCommand(/Transact/, () => Cluster.update(caller, others[0] ?? '', { siteId: from.id, labels: { env: 'x' } }))
  expect(await moveClusters(caller, request)).toEqual({ resolvedCount: 70, changedCount: 70 })
  expect(await moveClusters(caller, request)).toEqual({ resolvedCount: 70, changedCount: 0 })
  expect((await resolve(caller, { target: { selector: `platform/site=${to.id}` } })).resolvedCount).toBe(70)
  await Site.remove(caller, from.id)
  expect(await errorCodeOf(Site.remove(caller, to.id))).toBe('site_in_use')
  for (const siteId of [from.id, 'x', (await Site.create(await newCaller(), { name: 'foreign' })).id])
    expect(await errorCodeOf(moveClusters(caller, { ...request, siteId }))).toBe('unknown_site')
  expect((await moveClusters(caller, { ...request, siteId: null })).changedCount).toBe(70)
  await Site.remove(caller, to.id)
})

test('labels no further clusters after the user has lost the permission', async () => {
  const caller = await newCaller()
  await storeClusters(caller, 100)
  const user = keys.user(caller.organisationId, caller.userId)
  beforeCommand(/Transact/, () => update(user, { set: { roles: ['Viewer'] } }))
  expect(await errorCodeOf(labelClusters(caller, { target: { all: true }, set: { env: 'prod' } }))).toBe('forbidden')
  expect((await resolve(caller, { target: prod })).resolvedCount).toBe(90)
})
