import { expectStatus } from '../../conformance/support/answer.ts'
import { exportParts, firstInvalidSeq, parseLines, chainStartOf } from '../../conformance/support/audit.ts'
import type { Client } from '../../conformance/support/client.ts'
import { forEachLimit } from '@platform/core/lib/async'
import { readWrittenLines } from '../../support/script.ts'
import { waitFor } from '../../support/wait-for.ts'
import type { Load } from './load.ts'
import type { AcceptedBatch } from './records.ts'

const timeoutSeconds = 120

/** Waits until all jobs have ended and compares the platform with what it acknowledged. */
export async function verifyLoad(load: Load): Promise<{ lost: string[]; duplicates: string[] }> {
  const { acknowledged } = load
  const admin = await load.api.admin
  const expected = [...acknowledged.executed.keys(), ...acknowledged.batches.flatMap((batch) => batch.lines)]
  const lostItems = [
    ...(await findLostRecords(admin, load)),
    ...(await findLostJobs(admin, load)),
    ...(await problemsOf(acknowledged.batches, lostBatch)),
  ]
  const lines = (await readWrittenLines(load.targets.ledger)).toSorted()
  lostItems.push(...expected.filter((line) => !lines.includes(line)).map((line) => `script not run: ${line}`))
  const duplicates = [
    ...repeatedIds(lines).map((line) => `script run twice: ${line}`),
    ...(await findUnacknowledged(admin, load)),
    ...(await auditProblems(admin)),
    ...(await findRepeatedNotifications(acknowledged.batches)),
  ]
  return { lost: lostItems, duplicates }
}

async function problemsOf<Item>(items: Iterable<Item>, check: (item: Item) => Promise<string | undefined>) {
  const problems: string[] = []
  await forEachLimit(4, [...items], async (item) => {
    const problem = await check(item)
    if (problem !== undefined) problems.push(problem)
  })
  return problems
}

async function findLostRecords(
  admin: Client,
  { acknowledged: { clusters, users, removedUsers } }: Load,
): Promise<string[]> {
  const lostClusters = problemsOf(clusters, async ({ id, name }) => {
    const { status, body } = await admin.get(`/api/v1/clusters/${id}`)
    return body?.name === name ? undefined : `cluster ${id}: ${status}`
  })
  const lostUsers = problemsOf(users, async (id) => {
    const { status } = await admin.get(`/api/v1/users/${id}`)
    return status === (removedUsers.has(id) ? 404 : 200) ? undefined : `user ${id}: ${status}`
  })
  return [...(await lostClusters), ...(await lostUsers)]
}

async function findLostJobs(admin: Client, { acknowledged }: Load): Promise<string[]> {
  const { executed, undelivered, cancelled, completed } = acknowledged
  const expectations: [string, (job: any) => boolean][] = [
    ...[...executed].map(([line, id]): [string, (job: any) => boolean] => [
      id,
      ({ status, result }) => status === 'Completed' && result.exitCode === 0 && result.output === `${line}\n`,
    ]),
    ...[...completed].map((id): [string, (job: any) => boolean] => [id, ({ status }) => status === 'Completed']),
    ...[...undelivered].map((id): [string, (job: any) => boolean] => [
      id,
      ({ status }) => (status === 'Cancelled') === cancelled.has(id),
    ]),
  ]
  return problemsOf(expectations, async ([id, isExpected]) => {
    const job = await waitForEnd(admin, id)
    return job !== undefined && isExpected(job) ? undefined : `job ${id}: ${job?.status} ${job?.statusReason ?? ''}`
  })
}

const waitForEnd = (admin: Client, id: string): Promise<any> =>
  waitFor(
    `job ${id} ends`,
    async () => {
      const job = expectStatus(await admin.get(`/api/v1/jobs/${id}`), 200)
      return job.completedAt !== undefined && job
    },
    timeoutSeconds,
  ).catch(() => undefined)

async function lostBatch({ id, lines, read }: AcceptedBatch): Promise<string | undefined> {
  const readBatch = async () => expectStatus(await read(`/api/v1/jobs/batch/${id}`), 200)
  await waitFor(`${id} ends`, async () => (await readBatch()).status === 'Finished', timeoutSeconds).catch(
    () => undefined,
  )
  const { status, counts } = await readBatch()
  const isComplete = status === 'Finished' && counts.completed === lines.length
  return isComplete ? undefined : `${id}: ${status} ${JSON.stringify(counts)} of ${lines.length}`
}

const repeatedIds = (sorted: readonly string[]): string[] => sorted.filter((each, index) => each === sorted[index + 1])

/**
 * Returns resources that are listed twice or were never acknowledged. Allows one unacknowledged resource for each
 * abandoned call, which may have succeeded.
 */
async function findUnacknowledged(admin: Client, { acknowledged, stats }: Load): Promise<string[]> {
  const { executed, undelivered, completed, batches, clusters } = acknowledged
  const batchJobs = batches.flatMap(({ jobIds }) => jobIds)
  const clusterIds = clusters.map(({ id }) => id)
  const knownIds = new Set([...executed.values(), ...undelivered, ...completed, ...batchJobs, ...clusterIds])
  const listedItems = [...(await readPages(admin, '/api/v1/jobs')), ...(await readPages(admin, '/api/v1/clusters'))]
  const unknownItems = listedItems.filter(
    ({ id, createdAt, name }) => !knownIds.has(id) && (createdAt ?? name.startsWith('loaded')),
  )
  return [
    ...repeatedIds(listedItems.map(({ id }) => String(id)).toSorted()).map((id) => `listed twice: ${id}`),
    ...unknownItems.slice(stats.abandoned.length).map(({ id }) => `never acknowledged: ${id}`),
  ]
}

async function readPages(client: Client, path: string): Promise<any[]> {
  const all: any[] = []
  for (let page = 1, total = 1; all.length < total; page++) {
    const { items, totalCount } = expectStatus(await client.get(`${path}?page=${page}&pageSize=100`), 200)
    if (items.length === 0) throw new Error(`${path} counts ${totalCount} items and lists ${all.length}`)
    all.push(...items)
    total = totalCount
  }
  return all
}

/** Actions that the audit trail contains once for each resource. */
const singleActions = new Set(['cluster.register', 'job.submit', 'job.cancel', 'user.create', 'user.delete'])

async function auditProblems(admin: Client): Promise<string[]> {
  const { organisationId } = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  const parts = await exportParts(admin, '/api/v1/platform/audit/export?format=ndjson')
  const entries = parts.flatMap(parseLines)
  const singleEntries = entries.filter(({ action }) => singleActions.has(action))
  const names = singleEntries.map(({ action, resource }) => `${action} ${resource}`).toSorted()
  const brokenSeq = firstInvalidSeq(chainStartOf(organisationId), entries)
  return [
    ...repeatedIds(names).map((name) => `audited twice: ${name}`),
    ...(brokenSeq === undefined ? [] : [`the audit chain is broken at ${brokenSeq}`]),
  ]
}

async function findRepeatedNotifications(batches: readonly AcceptedBatch[]): Promise<string[]> {
  const lists = [...new Set(batches.map(({ read }) => read))].map(async (read) => {
    const { items } = expectStatus(await read('/api/v1/notifications?type=BatchFinished&pageSize=100'), 200)
    return repeatedIds(items.map(({ resource }: any) => String(resource)).toSorted())
  })
  return (await Promise.all(lists)).flat().map((resource) => `notified twice: ${resource}`)
}
