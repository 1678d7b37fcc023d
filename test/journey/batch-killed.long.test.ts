import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { listenAt } from '@platform/local/listening'
import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { failpoints } from '../support/failpoints.ts'
import { PlatformProcess } from '../support/platform.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { waitFor } from '../support/wait-for.ts'

const size = 500
/** A cluster lists at most this many jobs of batches. */
const smallSize = 3
/** Only batches of listed jobs reach these failpoints. */
const listedJobFailpoints = ['batch.listed', 'end.written']

/** Failpoint → the hit at which it kills the platform, 1 by default. Later hits leave a batch partly processed. */
const killHits: Record<string, number> = {
  'batch.expanding': 3,
  'claim.written': 20,
  'complete.written': 20,
}

async function submit(client: Client, path: string, body: object): Promise<any> {
  const headers = { 'idempotency-key': randomUUID() }
  const attempt = () =>
    client.post(path, body, headers).then(
      (response) => response.status !== 503 && response,
      () => false as const,
    )
  return expectStatus(await waitFor('a response', attempt, 180), 202)
}

const jobsOf = (clusterId: string, batch: number, ledger: string, count = 1) =>
  Array.from({ length: count }, (_, index) => ({
    clusterId,
    type: 'InvokeScript',
    payload: { script: `echo ${batch}-${index} >>'${ledger}'` },
  }))

/**
 * Whether a new batch is needed to reach the next failpoint: the last batch has few queued jobs, or the kill closed the
 * connection.
 */
async function isIdle(admin: Client, batchId: string | undefined): Promise<boolean> {
  if (batchId === undefined) return true
  const response = await admin.get(`/api/v1/jobs/batch/${batchId}`).catch((error) => {
    if (error instanceof TypeError) return undefined
    throw error
  })
  return response === undefined || expectStatus(response, 200).counts.queued < 50
}

async function expectProjections(api: Platform, batches: number, total: number): Promise<void> {
  const admin = await api.admin
  const read = async (path: string) => expectStatus(await admin.get(`/api/v1/${path}`), 200)
  const readCounts = async () => {
    const { totalCount } = await read('jobs?status=Completed&pageSize=1')
    const { items: notifications } = await read('notifications?pageSize=100')
    const { items: submissions } = await read('platform/audit?action=batch.submit')
    return [totalCount, notifications.filter(({ type }: any) => type === 'BatchFinished').length, submissions.length]
  }
  const expected = [total, batches, batches]
  await waitFor('the projections', async () =>
    (await readCounts()).every((count, index) => count >= (expected[index] ?? 0)),
  )
  expect(await readCounts()).toEqual(expected)
  expect(await read('platform/audit/verify')).toMatchObject({ valid: true })
}

test(`batches of ${size} jobs survive a kill at every failpoint without lost or repeated jobs`, async () => {
  const receiver = createServer((_, response) => void response.writeHead(204).end())
  const { port } = await listenAt(receiver, '127.0.0.1', 0)
  await using _ = { [Symbol.asyncDispose]: async () => void receiver.close() }
  await using platform = await PlatformProcess.start({ PLAT_WEBHOOK_ALLOW: `127.0.0.1:${port}` })
  await using folder = await temporaryFolder()
  const api = await platform.setUp()
  const admin = await api.admin
  const cluster = await api.newCluster()
  await using relay = runRelayCommand(`${cluster.relayCommand} --slots 16`, folder.path)
  await relay.writes(/Enrolled/)
  const webhook = { url: `http://127.0.0.1:${port}/`, events: ['platform.batch.*'] }
  expectStatus(await admin.post('/api/v1/webhooks', webhook), 201)
  const ledger = join(folder.path, 'ledger')
  const batchIds: string[] = []
  const submissions: Promise<unknown>[] = []

  const finishedBatch = (batchId: string): Promise<any> =>
    waitFor(
      'the end of the batch',
      async () => {
        const batch = expectStatus(await admin.get(`/api/v1/jobs/batch/${batchId}`), 200)
        return batch.status === 'Finished' && batch
      },
      240,
    )

  for (const name of failpoints) {
    await platform.kill()
    await platform.restart({ PLAT_FAILPOINT: `${name}=kill@${killHits[name] ?? 1}` })
    if (name.startsWith('submit.')) {
      // Only single jobs reach this failpoint.
      const [job] = jobsOf(cluster.id, submissions.length, ledger)
      submissions.push(submit(admin, '/api/v1/jobs', job ?? {}))
    } else if (listedJobFailpoints.includes(name)) {
      // A job is listed only if no other job of its cluster waits.
      for (const batchId of batchIds) await finishedBatch(batchId)
      const body = { jobs: jobsOf(cluster.id, submissions.length, ledger, smallSize) }
      submissions.push(submit(admin, '/api/v1/jobs/batch', body).then(({ batchId }) => batchIds.push(batchId)))
    } else if (name.startsWith('batch.') || (await isIdle(admin, batchIds.at(-1)))) {
      const body = { jobs: jobsOf(cluster.id, submissions.length, ledger, size) }
      submissions.push(submit(admin, '/api/v1/jobs/batch', body).then(({ batchId }) => batchIds.push(batchId)))
    }
    await platform.ended
    expect(platform.text).toContain(`failpoint ${name}`)
  }
  await platform.restart()
  await Promise.all(submissions)

  let total = submissions.length - batchIds.length
  for (const batchId of batchIds) {
    const { submittedCount, counts } = await finishedBatch(batchId)
    expect(counts).toEqual({ queued: 0, running: 0, completed: submittedCount, failed: 0, cancelled: 0 })
    total += submittedCount
  }
  expect(total).toBe(submissions.length - batchIds.length + size * (batchIds.length - 2) + smallSize * 2)
  const lines = await waitFor('all scripts', async () => {
    const writtenLines = (await readFile(ledger, 'utf8')).trim().split('\n')
    return writtenLines.length >= total && writtenLines
  })
  expect([lines.length, new Set(lines).size]).toEqual([total, total])
  await expectProjections(api, batchIds.length, total)
  expect((await admin.delete(`/api/v1/clusters/${cluster.id}`)).status).toBe(204)
}, 1_800_000)
