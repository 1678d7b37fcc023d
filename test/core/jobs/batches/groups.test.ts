import type { JobGroup } from '@platform/contract/job-group'
import { mergeGroups } from '@platform/contract/merge-groups'
import { resultsCsv } from '@platform/contract/results-csv'
import type { Outcome } from '@platform/contract/relay'
import { sweep } from '@platform/core/background/sweep'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { batchPut, update } from '@platform/core/db/table'
import * as Groups from '@platform/core/jobs/batches/groups'
import { jobIdOf } from '@platform/core/jobs/batches/id'
import { claim } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import * as Job from '@platform/core/jobs/job'
import { append } from '@platform/core/jobs/output'
import { createHash } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../../support/clock.ts'
import { bootstrapPlatform, callerWithCluster, expectError } from '../../../support/fixtures.ts'
import { countStoreCalls } from '../../../support/store-calls.ts'
import { readJobRecords, jobsForClusters, submitAndExpand } from '../../support/batches.ts'
import { completionReport } from '../../support/jobs.ts'

beforeAll(bootstrapPlatform)

const sha256 = (text: string | Buffer) => createHash('sha256').update(text).digest('hex')
const largeText = 'x'.repeat(65_536)

/** `lost`: the relay never reports the end. `cancelled` and `waiting` jobs are not claimed. */
interface End {
  stdout?: string[]
  stderr?: string
  binary?: Buffer
  code?: number | null
  outcome?: Outcome | 'lost' | 'cancelled' | 'waiting'
  sum?: string
}

async function batchOf(ends: readonly End[]) {
  const { caller, enrolled } = await callerWithCluster(['node-1', 'node-2'])
  const jobs = jobsForClusters([enrolled.cluster.id], ends.length)
  const { batchId, jobIds } = await submitAndExpand(caller, { jobs })
  const [first = '', second = ''] = enrolled.relay.nodes.map(({ id }) => id)
  const end = async (index: number) => {
    const { stdout = [], stderr, binary, code = 0, outcome = 'exited', sum } = ends[index]!
    const [jobId, relay] = [jobIds[index]!, enrolled.request()]
    if (outcome === 'waiting') return
    if (outcome === 'cancelled') return void (await Job.cancel(caller, jobId))
    const { leaseId } = await claim(relay, jobId, undefined)
    const piece = (data: string) => ({ nodeId: first, stream: 'stdout' as const, data })
    for (const [seq, data] of stdout.entries()) await append(relay, jobId, { leaseId, seq, chunks: [piece(data)] })
    if (outcome === 'lost') return
    const last = [
      ...(stderr === undefined ? [] : [{ nodeId: second, stream: 'stderr' as const, data: stderr }]),
      ...(binary === undefined ? [] : [{ ...piece(binary.toString('base64')), encoding: 'base64' as const }]),
    ]
    const report = { ...completionReport(enrolled, leaseId, code), outcome, outputSha256: sum }
    await complete(relay, jobId, { ...report, ...(last[0] && { output: { seq: stdout.length, chunks: last } }) })
  }
  return { caller, enrolled, batchId, jobIds, end }
}

const shown = ({ status, statusReason, exitCode, outputSha256, count, sample }: JobGroup) =>
  [status, statusReason, exitCode, outputSha256, count, sample?.slice(0, 9)].join(' ')

test('equal results are one group however their output arrived; each kind of end has its own; failures come first', async () => {
  const bytes = Buffer.from([0, 255, 10])
  const bothSha256 = sha256(
    ['streams', ...[sha256('same\n'), sha256('warning\n')].toSorted()].map((line) => `${line}\n`).join(''),
  )
  const cases: [End, string][] = [
    [{ stdout: ['same\n'], code: 3 }, `Failed exit_nonzero 3 ${sha256('same\n')} 1 same\n`],
    [{ stdout: ['part'], code: null, outcome: 'timed_out' }, `Failed execution_timeout  ${sha256('part')} 1 part`],
    [{ code: null, outcome: 'rejected' }, `Failed relay_rejected  ${sha256('')} 1 `],
    [{ stdout: ['so far'], outcome: 'lost' }, `Failed lease_lost  ${sha256('so far')} 1 so far`],
    [{ outcome: 'cancelled' }, 'Cancelled cancelled_by_user   1 '],
    [{ stdout: ['same\n'] }, `Completed  0 ${sha256('same\n')} 2 same\n`],
    [{ stdout: ['sa', 'me\n'], sum: sha256('a lie about small output') }, ''],
    [{ stdout: ['same\n'], stderr: 'warning\n' }, `Completed  0 ${bothSha256} 1 same\nwarn`],
    [{}, `Completed  0 ${sha256('')} 1 `],
    [{ binary: bytes }, `Completed  0 ${sha256(bytes)} 1 \0\u{fffd}\n`],
    [{ stdout: [largeText], sum: sha256(largeText) }, `Completed  0 ${sha256(largeText)} 1 xxxxxxxxx`],
    [{ stdout: [largeText] }, 'Completed  0  1 xxxxxxxxx'],
    [{ stdout: [largeText] }, 'Completed  0  1 xxxxxxxxx'],
    [{ outcome: 'waiting' }, ''],
  ]
  const { caller, batchId, jobIds, end } = await batchOf(cases.map(([each]) => each))
  for (const index of cases.keys()) await end(index)
  for (let minute = 0; minute < 11; minute++) {
    advanceClock(60_000)
    await sweep()
  }
  const { groups, pending } = await Groups.read(caller, batchId)
  expect(groups.map(shown).toSorted()).toEqual(cases.flatMap(([, line]) => line || []).toSorted())
  expect(groups.map(({ status }) => status)).toEqual([
    ...Array<string>(4).fill('Failed'),
    'Cancelled',
    ...Array<string>(7).fill('Completed'),
  ])
  expect([groups[5]?.count, pending]).toEqual([2, 1])
  expect((await Job.read(caller, jobIds[7]!)).result?.outputSha256).toBe(bothSha256)
})

test('the key of a group pages its clusters while jobs still end; jobs of removed clusters are hidden', async () => {
  const { caller, enrolled, batchId, jobIds, end } = await batchOf([{}, {}, {}, { code: 1 }, { code: 1 }])
  await end(0)
  await end(1)
  const { groups } = await Groups.read(caller, batchId)
  const readPage = (group: string, query: object) =>
    Groups.listClusters(caller, { batchId, group }, { page: 1, pageSize: 1, ...query })
  const { key } = groups[0]!
  const first = await readPage(key, {})
  for (const index of [2, 3, 4]) await end(index)
  const second = await readPage(key, { cursor: first.nextCursor })
  const { id: clusterId, name } = enrolled.cluster
  expect([...first.items, ...second.items]).toEqual([1, 0].map((index) => ({ clusterId, name, jobId: jobIds[index] })))
  expect([second.totalCount, second.nextCursor]).toEqual([3, undefined])
  expect((await readPage('1', {})).items[0]?.jobId).toBe(jobIds[2])
  for (const unknownGroup of ['2', 'x', '-1']) await expectError(readPage(unknownGroup, {}), 'group_not_found')
  await expectError(Groups.read(caller, 'batch_1'), 'batch_not_found')
  await Cluster.remove(caller, clusterId)
  expect((await Groups.read(caller, batchId)).groups).toEqual([])
  expect(await Groups.listResults(caller, batchId, { page: 1, pageSize: 9 })).toMatchObject({
    items: [],
    totalCount: 0,
  })
})

test('500 different results take at most three store calls, and each page of an export a few', async () => {
  const { caller, batchId, jobIds, end } = await batchOf([{ stdout: ['y'.repeat(700)] }])
  await end(0)
  const [record] = await readJobRecords(caller, jobIds)
  const { organisationId } = caller
  const items = Array.from({ length: 499 }, (_, index) => {
    const id = jobIdOf(batchId, index + 1)
    return { ...keys.job(organisationId, id), ...record, id, exitCode: index + 1, reason: 'r'.repeat(500) }
  })
  await batchPut(items)
  await update(keys.batch(organisationId, batchId), { set: { submittedCount: 500 } })
  const read = () => Groups.read(caller, batchId)
  expect(await countStoreCalls(read)).toBeLessThanOrEqual(3)
  const { groups, pending } = await read()
  expect([groups.length, pending, groups[39]?.sample?.length, groups[40]?.sample]).toEqual([500, 0, 700, undefined])
  const listResults = () => Groups.listResults(caller, batchId, { page: 1, pageSize: 100 })
  expect(await countStoreCalls(listResults)).toBeLessThanOrEqual(5)
  expect(await listResults()).toMatchObject({ totalCount: 500, items: { length: 100 } })
})

const group = (fields: Partial<JobGroup>): JobGroup => ({
  key: 'a',
  status: 'Completed',
  exitCode: 0,
  outputSha256: null,
  count: 1,
  sampleJobId: 'job_1',
  clusterIds: [],
  ...fields,
})

test('groups of several batches merge by their keys, failures first', () => {
  const firstBatch = { groups: [group({ count: 2, clusterIds: ['c1'] }), group({ key: 'b', count: 9 })], pending: 1 }
  const secondBatch = {
    groups: [group({ key: 'c', status: 'Failed' }), group({ sample: 'x', clusterIds: ['c2', 'c1'] })],
    pending: 2,
  }
  const { groups, pending } = mergeGroups([firstBatch, secondBatch])
  expect(groups.map(({ key, count }) => `${key} ${count}`)).toEqual(['c 1', 'b 9', 'a 3'])
  expect([groups[2]?.clusterIds, groups[2]?.sample, pending]).toEqual([['c1', 'c2'], 'x', 3])
})

test('CSV quotes all texts, and a cell cannot run as a formula', () => {
  const row = { jobId: 'job_1', clusterId: 'clus_1', status: 'Failed', exitCode: -1, outputSha256: null } as const
  const csvOf = (clusterName: string) =>
    resultsCsv([{ ...row, clusterName, output: '', outputTruncated: false }]).split('\r\n')[1]
  const cells = {
    a: '"a"',
    'a"b,\n': '"a""b,\n"',
    '=1': `"'=1"`,
    '+1': `"'+1"`,
    '-1': `"'-1"`,
    '@a': `"'@a"`,
    ' =1': `"' =1"`,
    '\ta': `"'\ta"`,
    'ok;=1\n@a': `"ok;'=1\n'@a"`,
  }
  for (const [text, expected] of Object.entries(cells))
    expect(csvOf(text)).toBe(`${expected},"clus_1","Failed",,-1,,,"job_1",,false,""`)
})
