import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { waitFor } from '../support/wait-for.ts'
import { failpoints } from '../support/failpoints.ts'
import { PlatformProcess } from '../support/platform.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** As many jobs as a batch can hold. */
const size = 500

/** Where it dies: everywhere. */
const places = failpoints

/** A batch is expanded in many transactions: strike between two of them. */
const nthHit: Record<string, number> = { 'batch.expanding': 3, 'claim.written': 20, 'complete.written': 20 }

/** Answers 204 to everything, so that webhooks have somewhere to go. */
async function receiver() {
  const server = createServer((_, response) => void response.writeHead(204).end())
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return { port, [Symbol.asyncDispose]: async () => void server.close() }
}

/** Sends again and again, with one key, until there is an answer: what a client does whose platform dies meanwhile. */
async function persistently(client: Client, path: string, body: object): Promise<any> {
  const headers = { 'idempotency-key': randomUUID() }
  const answer = await waitFor(
    'an answer',
    () =>
      client.post(path, body, headers).then(
        (given) => given.status !== 503 && given,
        () => false as const,
      ),
    180,
  )
  return expectStatus(answer, 202)
}

/** Scripts that append a line of their own to the ledger. */
const jobsOf = (clusterId: string, batch: number, ledger: string, count = 1) =>
  Array.from({ length: count }, (_, index) => ({
    clusterId,
    type: 'InvokeScript',
    payload: { script: `echo ${batch}-${index} >>'${ledger}'` },
  }))

const finished = async (api: Platform, batchId: string) =>
  waitFor(
    'the batch is finished',
    async () => {
      const batch = expectStatus(await (await api.admin).get(`/api/v1/jobs/batch/${batchId}`), 200)
      return batch.status === 'Finished' && batch
    },
    240,
  )

// By default a kill under load strikes jobs, and the tests of batches strike their expansion.
test(`a batch of ${size} jobs survives kill -9 (${places.length}): no job is lost, none runs twice, every count is right`, async () => {
  await using target = await receiver()
  await using platform = await PlatformProcess.start({ PLAT_OUTBOUND_ALLOW: `127.0.0.1:${target.port}` })
  await using folder = await temporaryFolder()
  const api = await platform.setUp()
  const admin = await api.admin
  const cluster = await api.newCluster()
  await using relay = runRelayCommand(`${cluster.relayCommand} --slots 16`, folder.path)
  await relay.writes(/Enrolled/)
  const webhook = { url: `http://127.0.0.1:${target.port}/`, events: ['platform.batch.*'] }
  expectStatus(await admin.post('/api/v1/webhooks', webhook), 201)
  const ledger = join(folder.path, 'ledger')
  const batchIds: string[] = []
  const submissions: Promise<unknown>[] = []

  for (const name of places) {
    await platform.kill()
    await platform.restart({ PLAT_FAILPOINT: `${name}=kill@${nthHit[name] ?? 1}` })
    if (name.startsWith('dispatch.')) {
      // The jobs of a batch need no message of their own.
      const [job] = jobsOf(cluster.id, submissions.length, ledger)
      submissions.push(persistently(admin, '/api/v1/jobs', job ?? {}))
    } else if (name.startsWith('batch.') || (await isIdle(api, batchIds.at(-1)))) {
      const body = { jobs: jobsOf(cluster.id, submissions.length, ledger, size) }
      submissions.push(persistently(admin, '/api/v1/jobs/batch', body).then(({ batchId }) => batchIds.push(batchId)))
    }
    await platform.ended
    expect(platform.text).toContain(`failpoint ${name}`)
  }
  await platform.restart()
  await Promise.all(submissions)

  const total = submissions.length - batchIds.length + size * batchIds.length
  for (const batchId of batchIds) {
    const batch = await finished(api, batchId)
    expect(batch.counts).toEqual({ queued: 0, running: 0, completed: size, failed: 0, cancelled: 0 })
  }
  const lines = await waitFor('every script has run', async () => {
    const written = (await readFile(ledger, 'utf8')).trim().split('\n')
    return written.length >= total && written
  })
  expect(lines.length).toBe(total)
  expect(new Set(lines).size).toBe(lines.length)
  await expectBooks(api, batchIds.length, total)
  expect((await admin.delete(`/api/v1/clusters/${cluster.id}`)).status).toBe(204)
  console.log(`${places.length} kills: ${lines.length} scripts of ${batchIds.length} batches ran once each.`)
}, 1_800_000)

/** Whether a batch is needed to bring the platform to its failpoint. Without an answer it may be: the connection was one of the platform before. */
async function isIdle(api: Platform, last: string | undefined): Promise<boolean> {
  if (last === undefined) return true
  const admin = await api.admin
  const answer = await admin.get(`/api/v1/jobs/batch/${last}`).catch((failure) => {
    if (failure instanceof TypeError) return undefined
    throw failure
  })
  return answer === undefined || expectStatus(answer, 200).counts.queued < 50
}

/** The books are as if nobody had been killed: totals, one notification a batch, a chain that verifies. */
async function expectBooks(api: Platform, batches: number, total: number): Promise<void> {
  const admin = await api.admin
  const read = async (path: string) => expectStatus(await admin.get(`/api/v1/${path}`), 200)
  const books = async () => {
    const { totalCount } = await read('jobs?status=Completed&pageSize=1')
    const { items: notifications } = await read('notifications?pageSize=100')
    const { items: submitted } = await read('platform/audit?action=batch.submit')
    const finished = notifications.filter(({ type }: any) => type === 'BatchFinished')
    return [totalCount, finished.length, submitted.length]
  }
  const expected = [total, batches, batches]
  await waitFor('the books are closed', async () => {
    const counts = await books()
    return counts.every((count, index) => count >= (expected[index] ?? 0))
  })
  expect(await books()).toEqual(expected)
  expect(await read('platform/audit/verify')).toMatchObject({ valid: true })
}
