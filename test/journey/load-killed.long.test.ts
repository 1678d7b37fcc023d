import { join } from 'node:path'
import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { waitFor } from '../support/wait-for.ts'
import { Load, type Acknowledged } from '../support/load.ts'
import { PlatformProcess } from '../support/platform.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { readWrittenLines } from '../support/script.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const killCount = 4
const responsesBetweenKills = 60
const clientCount = 4

async function expectStored(
  api: Platform,
  { clusters, jobsByLine, undeliveredJobIds, cancelledJobs }: Acknowledged,
): Promise<void> {
  for (const { id, name } of clusters) expect(await api.cluster(id)).toMatchObject({ name })
  for (const jobId of [...jobsByLine.values(), ...undeliveredJobIds])
    expect(await api.job(jobId)).toMatchObject({ id: jobId })
  for (const jobId of cancelledJobs) expect(await api.job(jobId)).toMatchObject({ status: 'Cancelled' })
}

async function expectListed(api: Platform, { clusters }: Acknowledged): Promise<void> {
  const admin = await api.admin
  const listedIds: string[] = []
  for (let page = 1, total = 1; listedIds.length < total; page++) {
    const { items, totalCount } = expectStatus(await admin.get(`/api/v1/clusters?page=${page}&pageSize=100`), 200)
    expect(items).not.toHaveLength(0)
    listedIds.push(...items.map(({ id }: any) => id))
    total = totalCount
  }
  expect(new Set(listedIds).size).toBe(listedIds.length)
  expect(listedIds).toEqual(expect.arrayContaining(clusters.map(({ id }) => id)))
}

async function expectRunOnce(api: Platform, { jobsByLine }: Acknowledged, file: string): Promise<void> {
  for (const [line, jobId] of jobsByLine) {
    await waitFor('the end of the job', async () => (await api.job(jobId)).completedAt !== undefined)
    expect(await api.job(jobId)).toMatchObject({ status: 'Completed', result: { output: `${line}\n`, exitCode: 0 } })
  }
  const lines = await readWrittenLines(file)
  expect(new Set(lines).size).toBe(lines.length)
  expect(lines).toEqual(expect.arrayContaining([...jobsByLine.keys()]))
}

/** Expects a correct count of active jobs: a cluster can be removed only at 0. */
async function expectRemovable(api: Platform, clusterId: string): Promise<void> {
  const admin = await api.admin
  const path = `/api/v1/clusters/${clusterId}`
  const jobId = await api.submit(clusterId, { script: 'sleep 600' })
  expectStatus(await admin.delete(path), 409, 'cluster_has_active_jobs')
  expectStatus(await admin.post(`/api/v1/jobs/${jobId}/cancel`), 202)
  await waitFor('the removal of the cluster', async () => (await admin.delete(path)).status === 204)
}

test('a kill under load loses no acknowledged change, repeats no job, and keeps counts correct', async () => {
  await using platform = await PlatformProcess.start({ PLAT_FUNCTION_THREADS: '2' })
  await using folder = await temporaryFolder()
  const api = await platform.setUp()
  const admin = await api.admin
  const [workingCluster, offlineCluster] = [await api.newCluster(), await api.newCluster()]
  await using relay = runRelayCommand(workingCluster.relayCommand, folder.path)
  const targets = {
    admin,
    workingClusterId: workingCluster.id,
    offlineClusterId: offlineCluster.id,
    ledger: join(folder.path, 'ledger'),
  }
  const load = new Load(targets)
  const { acknowledged } = load

  for (let kill = 0; kill < killCount; kill++) {
    await load.untilKilled(clientCount, responsesBetweenKills, () => platform.kill())
    await platform.restart()
    await expectStored(api, acknowledged)
  }
  await expectListed(api, acknowledged)
  for (const { name } of acknowledged.clusters.slice(-20)) {
    expectStatus(await admin.post('/api/v1/clusters', { name, type: 'Hypervisor' }), 409, 'cluster_name_taken')
  }
  await expectRunOnce(api, acknowledged, targets.ledger)
  for (const { id } of [workingCluster, offlineCluster]) await expectRemovable(api, id)
  expect(relay.text).not.toContain('Unexpected error')
}, 180_000)
