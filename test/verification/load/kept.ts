import { expectStatus } from '../../conformance/support/answer.ts'
import { exportParts, firstBroken, parseLines, startOf } from '../../conformance/support/audit.ts'
import type { Client } from '../../conformance/support/client.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import { waitFor } from '../../support/wait-for.ts'
import { readWrittenLines } from '../../support/script.ts'
import type { MixedLoad } from './mixed.ts'
import type { Promised, PromisedBatch } from './promised.ts'

/** What became of all that a load was promised. */
export interface Outcome {
  /** How much was promised, in things. */
  promised: number
  /** Promises that were not kept, each in words. */
  lost: string[]
  /** What is there more often than it was asked for. */
  duplicates: string[]
}

const patienceSeconds = 120

/** Waits until all that is under way has ended, and compares everything with what was promised. */
export async function outcomeOf(load: MixedLoad): Promise<Outcome> {
  const { api, promised } = load
  const lost = [
    ...(await lostClusters(api, promised)),
    ...(await lostJobs(api, promised)),
    ...(await missing(promised.batches, lostOfBatch)),
    ...(await lostUsers(api, promised)),
  ]
  const lines = (await readWrittenLines(load.targets.ledger)).toSorted()
  const wanted = [...promised.worked.keys(), ...promised.batches.flatMap((batch) => batch.lines)]
  const ran = new Set(lines)
  lost.push(...wanted.filter((line) => !ran.has(line)).map((line) => `the script of ${line} has not run`))
  const duplicates = [
    ...repeated(lines).map((line) => `the script of ${line} has run twice`),
    ...(await unasked(load)),
    ...(await recordedTwice(await api.admin)),
    ...(await toldTwice(promised)),
  ]
  return { promised: countOf(promised), lost, duplicates }
}

const countOf = ({ clusters, worked, parked, cancelled, batches, completed, users, removed }: Promised): number =>
  [clusters.length, worked.size, parked.size, cancelled.size, batches.flatMap(({ lines }) => lines).length]
    .concat([completed.size, users.size, removed.size])
    .reduce((sum, count) => sum + count, 0)

/** What is wrong with the things of a list, a few of them at a time. */
async function missing<Thing>(
  things: readonly Thing[],
  look: (thing: Thing) => Promise<string | undefined>,
): Promise<string[]> {
  const left = [...things]
  const found: string[] = []
  const worker = async (): Promise<void> => {
    for (let thing = left.pop(); thing !== undefined; thing = left.pop()) {
      const complaint = await look(thing)
      if (complaint !== undefined) found.push(complaint)
    }
  }
  await Promise.all(Array.from({ length: 4 }, worker))
  return found
}

const lostClusters = (api: Platform, { clusters }: Promised): Promise<string[]> =>
  missing(clusters, async ({ id, name }) => {
    const answer = await (await api.admin).get(`/api/v1/clusters/${id}`)
    return answer.body?.name === name ? undefined : `cluster ${id}: ${answer.status}`
  })

/** Jobs that have not ended as they have to. */
async function lostJobs(api: Platform, { worked, parked, cancelled, completed }: Promised): Promise<string[]> {
  const admin = await api.admin
  const ends = (id: string, fits: (job: any) => boolean) => async () => {
    const job = await ended(admin, id)
    return job !== undefined && fits(job) ? undefined : `job ${id}: ${job?.status} ${job?.statusReason ?? ''}`
  }
  const jobs = [
    ...[...worked].map(([line, id]) => ends(id, ({ status, result }) => isDone(status, result, line))),
    ...[...completed].map((id) => ends(id, ({ status }) => status === 'Completed')),
    ...[...parked].map((id) => ends(id, ({ status }) => (status === 'Cancelled') === cancelled.has(id))),
  ]
  return missing(jobs, (look) => look())
}

const isDone = (status: string, result: any, line: string): boolean =>
  status === 'Completed' && result.exitCode === 0 && result.output === `${line}\n`

/** A job once it is over; undefined where that takes for ever, or where there is none. */
const ended = (admin: Client, id: string): Promise<any> =>
  waitFor(
    `job ${id} ends`,
    async () => {
      const job = expectStatus(await admin.get(`/api/v1/jobs/${id}`), 200)
      return job.completedAt !== undefined && job
    },
    patienceSeconds,
  ).catch(() => undefined)

async function lostOfBatch({ id, lines, read }: PromisedBatch): Promise<string | undefined> {
  const isOver = async () => expectStatus(await read(`/api/v1/jobs/batch/${id}`), 200).status === 'Finished'
  const hasEnded = await waitFor(`${id} ends`, isOver, patienceSeconds).then(
    () => true,
    () => false,
  )
  const { counts } = expectStatus(await read(`/api/v1/jobs/batch/${id}`), 200)
  const isWhole = hasEnded && counts.completed === lines.length
  return isWhole ? undefined : `${id}: ${JSON.stringify(counts)} of ${lines.length}`
}

const lostUsers = (api: Platform, { users, removed }: Promised): Promise<string[]> =>
  missing([...users], async (id) => {
    const { status } = await (await api.admin).get(`/api/v1/users/${id}`)
    return status === (removed.has(id) ? 404 : 200) ? undefined : `user ${id}: ${status}`
  })

/** Those that a list holds more than once, where it is sorted. */
const repeated = (sorted: readonly string[]): string[] => sorted.filter((each, index) => each === sorted[index + 1])

/** What lists show beyond what was asked for. A call that was given up may have been done. */
async function unasked({ api, promised, tally }: MixedLoad): Promise<string[]> {
  const admin = await api.admin
  const { worked, parked, completed, batches, clusters } = promised
  const known = new Set([...worked.values(), ...parked, ...completed, ...batches.flatMap(({ jobIds }) => jobIds)])
  for (const { id } of clusters) known.add(id)
  const listed = [...(await everything(admin, '/api/v1/jobs')), ...(await everything(admin, '/api/v1/clusters'))]
  const names = listed.map(({ id }) => String(id)).toSorted()
  const strangers = listed.filter(
    ({ id, createdAt, name }) => !known.has(id) && (createdAt ?? name.startsWith('loaded')),
  )
  return [
    ...repeated(names).map((id) => `${id} is listed twice`),
    ...strangers.slice(tally.givenUp.length).map(({ id }) => `nobody was promised ${id}`),
  ]
}

/** All pages of a list. */
async function everything(client: Client, path: string): Promise<any[]> {
  const all: any[] = []
  for (let page = 1, total = 1; all.length < total; page++) {
    const { items, totalCount } = expectStatus(await client.get(`${path}?page=${page}&pageSize=100`), 200)
    if (items.length === 0)
      return [...all, { id: `${path} counts ${totalCount} and shows ${all.length}`, name: 'loaded' }]
    all.push(...items)
    total = totalCount
  }
  return all
}

/** What is recorded of a thing once in its life. */
const once = new Set(['cluster.register', 'job.submit', 'job.cancel', 'user.create', 'user.delete'])

/** What the audit has recorded twice, of what happens once to each thing; and whether its chain is broken. */
async function recordedTwice(admin: Client): Promise<string[]> {
  const { organisationId } = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  const parts = await exportParts(admin, '/api/v1/platform/audit/export?format=ndjson')
  const entries = parts.flatMap(parseLines)
  const names = entries.filter(({ action }) => once.has(action)).map(({ action, resource }) => `${action} ${resource}`)
  const broken = firstBroken(startOf(organisationId), entries)
  return [
    ...repeated(names.toSorted()).map((name) => `the audit has ${name} twice`),
    ...(broken === undefined ? [] : [`the chain of the audit is broken at ${broken}`]),
  ]
}

/** Notifications that somebody got twice. */
async function toldTwice({ batches }: Promised): Promise<string[]> {
  const readers = new Map(batches.map(({ read }) => [read, read]))
  const told: string[] = []
  for (const read of readers.values()) {
    const { items } = expectStatus(await read('/api/v1/notifications?type=BatchFinished&pageSize=100'), 200)
    told.push(...repeated(items.map(({ resource }: any) => String(resource)).toSorted()))
  }
  return told.map((resource) => `somebody was told of ${resource} twice`)
}
