import { join } from 'node:path'
import { expect, test } from 'vitest'
import { answered } from '../../conformance/answer.ts'
import type { Platform } from '../../conformance/platform.ts'
import { until } from '../../conformance/until.ts'
import { Load, type Promised } from '../support/load.ts'
import { PlatformProcess } from '../support/platform.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { ledger } from '../support/script.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const kills = 4
const answersBetweenKills = 60
const clients = 4

/** All that was answered answers still, and what has ended stays as it ended. */
async function expectKept(api: Platform, { clusters, worked, parked, cancelled }: Promised): Promise<void> {
  for (const { id, name } of clusters) expect(await api.cluster(id)).toMatchObject({ name })
  for (const jobId of [...worked.values(), ...parked]) expect(await api.job(jobId)).toMatchObject({ id: jobId })
  for (const jobId of cancelled) expect(await api.job(jobId)).toMatchObject({ status: 'Cancelled' })
}

/** The list shows every cluster once, and counts them right. */
async function expectListed(api: Platform, { clusters }: Promised): Promise<void> {
  const admin = await api.admin
  const listed: string[] = []
  for (let page = 1, total = 1; listed.length < total; page++) {
    const { items, totalCount } = answered(await admin.get(`/api/v1/clusters?page=${page}&pageSize=100`), 200)
    expect(items).not.toHaveLength(0)
    listed.push(...items.map(({ id }: any) => id))
    total = totalCount
  }
  expect(new Set(listed).size).toBe(listed.length)
  expect(listed).toEqual(expect.arrayContaining(clusters.map(({ id }) => id)))
}

test('kill -9 again and again under load loses nothing that was answered, runs nothing twice, and leaves no counter wrong', async () => {
  await using platform = await PlatformProcess.start()
  await using folder = await temporaryFolder()
  const api = await platform.setUp()
  const admin = await api.admin
  const [working, parked] = [await api.newCluster(), await api.newCluster()]
  await using relay = runRelayCommand(working.relayCommand, folder.path)
  const targets = { admin, workingId: working.id, parkedId: parked.id, ledger: join(folder.path, 'ledger') }
  const load = new Load(targets)
  const { promised } = load

  const t0 = performance.now(); const lap = (x: string) => console.log('LAP', x, Math.round(performance.now() - t0))
  for (let kill = 0; kill < kills; kill++) {
    await load.untilKilled(clients, answersBetweenKills, () => platform.kill())
    lap('killed'); await platform.restart()
    lap('restarted')
    await expectKept(api, promised); lap('kept')
  }
  await expectListed(api, promised)
  for (const { name } of promised.clusters.slice(-20)) {
    answered(await admin.post('/api/v1/clusters', { name, type: 'Hypervisor' }), 409, 'cluster_name_taken')
  }

  lap('listed')
  for (const [line, jobId] of promised.worked) {
    await until('the job ends', async () => (await api.job(jobId)).completedAt !== undefined)
    expect(await api.job(jobId)).toMatchObject({ status: 'Completed', result: { output: `${line}\n`, exitCode: 0 } })
  }
  lap('worked')
  const lines = await ledger(targets.ledger)
  expect(new Set(lines).size).toBe(lines.length)
  expect(lines).toEqual(expect.arrayContaining([...promised.worked.keys()]))

  // A cluster can be removed when its counter of active jobs is exactly 0: jobs whose answer was lost are in it, too.
  for (const clusterId of [working.id, parked.id]) {
    const jobId = await api.submit(clusterId, { script: 'sleep 600' })
    answered(await admin.delete(`/api/v1/clusters/${clusterId}`), 409, 'cluster_has_active_jobs')
    answered(await admin.post(`/api/v1/jobs/${jobId}/cancel`), 202)
    await until(
      'the cluster can be removed',
      async () => (await admin.delete(`/api/v1/clusters/${clusterId}`)).status === 204,
    )
  }
  lap('removed')
  expect(await relay.ended).toMatchObject({ exitCode: 4 })
  lap('relay ended')
  const { clusters, worked, cancelled } = promised
  console.log(
    `${kills} kills: ${clusters.length} clusters, ${worked.size + promised.parked.size} jobs and ${cancelled.size} cancels were answered and kept.`,
  )
}, 180_000)
