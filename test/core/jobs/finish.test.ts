import { type Caller, system } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Batch from '@platform/core/jobs/batches/batch'
import { finishQueued, requestCancel, requestCancelAll } from '@platform/core/jobs/cancel'
import { claim, findOwnJob } from '@platform/core/jobs/claim'
import { complete, completeAll } from '@platform/core/jobs/complete'
import * as Job from '@platform/core/jobs/job'
import { append, readBytes, readOutput } from '@platform/core/jobs/output'
import { findStoredResponse } from '@platform/core/outbox/idempotency'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test } from 'vitest'
import { bootstrapPlatform, callerWithCluster, errorCodeOf, expectError } from '../../support/fixtures.ts'
import { advanceClock } from '../../support/clock.ts'
import { maxConcurrentTransactions, onStoreCall } from '../../support/store-calls.ts'
import { runBefore } from '../support/interleaving.ts'
import {
  completionReport,
  dispatchedJob,
  readJobCounters,
  outputChunk,
  runningJob,
  scriptJob,
  waitingJob,
} from '../support/jobs.ts'
import { readPendingEvents, readPendingRecords } from '../support/outbox.ts'
import { measureUsage } from '../support/usage.ts'

beforeAll(bootstrapPlatform)

const readAuditActions = async ({ organisationId }: Caller, jobId: string) =>
  (await readPendingRecords(organisationId)).flatMap(({ audit }) => (audit?.resource === jobId ? [audit.action] : []))

test('a cancelled job leaves the inbox and the due index', async () => {
  const { caller, enrolled, jobId, key } = await waitingJob()
  expect(await readJobCounters(caller, enrolled)).toEqual([1, 1])
  await Job.cancel(caller, jobId)
  expect(await readJobCounters(caller, enrolled)).toEqual([0, 0])
  expect(await get(key)).not.toHaveProperty('duepk')
  expect(await readAuditActions(caller, jobId)).toEqual(['job.submit', 'job.cancel'])
})

test('a job that the platform ends has no audit entry of its end', async () => {
  const { caller, jobId, record } = await waitingJob()
  const job = await record()
  const end = { status: 'Failed', statusReason: 'delivery_timeout' } as const
  expect(await finishQueued(system(caller.organisationId), [job], end)).toBe(true)
  expect(await finishQueued(system(caller.organisationId), [job], end)).toBe(false)
  expect(await readAuditActions(caller, jobId)).toEqual(['job.submit'])
  expect(await Job.read(caller, jobId)).toMatchObject(end)
})

test.each([
  ['waiting', waitingJob],
  ['running', runningJob],
])('stores the idempotent response of cancelling a %s job', async (_, createJob) => {
  const { caller, jobId } = await createJob()
  const idempotency = { organisationId: caller.organisationId, key: newId('job'), fingerprint: 'one', status: 200 }
  const response = await Job.cancel({ ...caller, idempotency }, jobId)
  expect(await findStoredResponse(caller, idempotency)).toEqual({ status: 200, body: response })
})

test('requests cancellation of a running job once', async () => {
  const { caller, jobId, key } = await runningJob()
  const { cancelRequestedAt } = await Job.cancel(caller, jobId)
  const dueInMs = keys.dueMsOf(String((await get(key))?.['duesk'])) - now()
  expect(dueInMs).toBeGreaterThan(30_000)
  expect(dueInMs).toBeLessThanOrEqual(60_000)
  const repeat = async () => expect(await Job.cancel(caller, jobId)).toMatchObject({ cancelRequestedAt })
  expect(await maxConcurrentTransactions(repeat)).toBe(0)
  expect(await readAuditActions(caller, jobId)).toEqual(['job.submit', 'job.cancel'])
})

test('requests cancellation of a job that is claimed concurrently', async () => {
  const { caller, enrolled, jobId } = await waitingJob()
  runBefore(/^TransactWrite/, () => claim(enrolled.request(), jobId, undefined))
  expect(await Job.cancel(caller, jobId)).toMatchObject({ status: 'Running', cancelRequestedAt: expect.any(String) })
  const response = await heartbeat(enrolled.request(), { ...enrolled.heartbeat, running: [jobId] })
  expect(response.cancel).toEqual([jobId])
  expect(await readJobCounters(caller, enrolled)).toEqual([1, 0])
})

test('rejects cancelling a job that ends concurrently', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const report = completionReport(enrolled, leaseId)
  runBefore(/^TransactWrite/, () => complete(enrolled.request(), jobId, report))
  await expectError(Job.cancel(caller, jobId), 'job_already_finished')
  const job = await Job.read(caller, jobId)
  expect(job).toMatchObject({ status: 'Completed' })
  expect(job).not.toHaveProperty('cancelRequestedAt')
  expect(await readAuditActions(caller, jobId)).toEqual(['job.submit'])
})

test('a cancellation fails after five conflicting changes and leaves the job unchanged', async () => {
  const { caller, jobId, key } = await waitingJob()
  let attempts = 0
  {
    using _ = onStoreCall({
      before: async ({ command }) => {
        if (!command.startsWith('TransactWrite')) return
        await update(key, attempts++ % 2 === 0 ? { set: { isThrottled: true } } : { remove: ['isThrottled'] })
      },
    })
    await expectError(Job.cancel(caller, jobId), 'conflict')
  }
  expect(attempts).toBe(5)
  expect((await Job.read(caller, jobId)).status).toBe('Queued')
})

test('requests cancellation of several jobs, all or none', async () => {
  const { caller, enrolled, jobId } = await runningJob()
  const secondId = await dispatchedJob(caller, enrolled)
  await claim(enrolled.request(), secondId, undefined)
  const [first, second] = [await findOwnJob(enrolled.request(), jobId), await findOwnJob(enrolled.request(), secondId)]
  expect(await requestCancel(caller, second)).toBe(true)
  expect(await requestCancelAll([first, second])).toBe(false)
  expect(await Job.read(caller, jobId)).not.toHaveProperty('cancelRequestedAt')
  expect(await requestCancelAll([first])).toBe(true)
  const response = await heartbeat(enrolled.request(), { ...enrolled.heartbeat, running: [jobId, secondId] })
  expect(response.cancel.toSorted()).toEqual([jobId, secondId].toSorted())
  expect(await requestCancel(caller, first)).toBe(false)
})

test('cancels a job of a batch that is not expanded yet', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const jobs = [scriptJob(enrolled.cluster.id), scriptJob(enrolled.cluster.id)]
  const { jobIds } = await Batch.submit(caller, { jobs })
  const [first = '', second = ''] = jobIds
  expect(await get(keys.job(caller.organisationId, first))).toBeUndefined()
  expect(await Job.cancel(caller, first)).toMatchObject({ id: first, status: 'Cancelled' })
  expect(await Job.read(caller, first)).toMatchObject({ status: 'Cancelled', statusReason: 'cancelled_by_user' })
  expect(await Job.read(caller, second)).toMatchObject({ status: 'Queued' })
})

test.each([
  ['exited', 3, 'Failed', 'exit_nonzero'],
  ['timed_out', null, 'Failed', 'execution_timeout'],
  ['rejected', null, 'Failed', 'relay_rejected'],
  ['interrupted', null, 'Failed', 'interrupted'],
  ['cancelled', null, 'Failed', 'interrupted'],
] as const)('the outcome %s with exit code %s is %s (%s)', async (outcome, exitCode, status, statusReason) => {
  const { caller, enrolled, jobId, leaseId, key } = await runningJob()
  const report = { ...completionReport(enrolled, leaseId, exitCode), outcome }
  const responses = [complete(enrolled.request(), jobId, report), complete(enrolled.request(), jobId, report)]
  for (const response of await Promise.all(responses)) expect(response).toEqual({ jobId, status })
  expect(await Job.read(caller, jobId)).toMatchObject({ status, statusReason, result: { exitCode } })
  expect(await readJobCounters(caller, enrolled)).toEqual([0, 0])
  await expectError(Job.cancel(caller, jobId), 'job_already_finished')
  expect(await get(key)).not.toHaveProperty('duepk')
  expect(await readPendingEvents(caller, 'job.failed')).toMatchObject([
    { subject: jobId, data: { jobId, previousStatus: 'Running', statusReason, exitCode } },
  ])
})

test('the exit code of a job is the first non-zero one of its nodes', async () => {
  const { caller, enrolled } = await callerWithCluster(['a', 'b', 'c'])
  const jobId = await dispatchedJob(caller, enrolled)
  const { leaseId } = await claim(enrolled.request(), jobId, undefined)
  const nodes = enrolled.relay.nodes.map(({ id }, index) => ({ nodeId: id, exitCode: index * 3 }))
  await complete(enrolled.request(), jobId, { leaseId, outcome: 'exited', exitCode: 0, nodes })
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', result: { exitCode: 3 } })
})

test('rejects completions with another lease or of another relay', async () => {
  const { enrolled, jobId, leaseId, record, key } = await runningJob()
  const report = completionReport(enrolled, leaseId)
  await expectError(complete(enrolled.request(), jobId, { ...report, leaseId: newId('lease') }), 'lease_not_held')
  await update(key, { set: { relayId: newId('relay') } })
  await expectError(complete(enrolled.request(), jobId, report), 'lease_not_held')
  expect((await record()).status).toBe('Running')
})

test('rejects a completion whose lease changes concurrently', async () => {
  const { caller, enrolled, jobId, leaseId, key } = await runningJob()
  runBefore(/^TransactWrite/, () => update(key, { set: { leaseId: newId('lease') } }))
  await expectError(complete(enrolled.request(), jobId, completionReport(enrolled, leaseId)), 'lease_not_held')
  expect(await readJobCounters(caller, enrolled)).toEqual([1, 0])
})

test('a replayed request about a job changes nothing', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const request = enrolled.request()
  const [chunk, report] = [outputChunk(leaseId, 0, 'x'), completionReport(enrolled, leaseId)]
  const outputs = [await append(request, jobId, chunk), await append(request, jobId, chunk)]
  expect(outputs[1]).toEqual(outputs[0])
  const ends = [await complete(request, jobId, report), await complete(request, jobId, report)]
  expect(ends[1]).toEqual(ends[0])
  await expectError(append(request, jobId, chunk), 'job_already_finished')
  await expectError(claim(request, jobId, undefined), 'job_not_claimable')
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Completed', result: { output: 'x' } })
  expect(await readJobCounters(caller, enrolled)).toEqual([0, 0])
})

test('the result includes output that arrives during completion', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  runBefore(/^TransactWrite/, () => append(enrolled.request(), jobId, outputChunk(leaseId, 0, 'late')))
  const response = await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  expect(response).toEqual({ jobId, status: 'Completed' })
  expect((await Job.read(caller, jobId)).result?.output).toBe('late')
})

test('a completion fails after four conflicting changes and leaves the job unchanged', async () => {
  const { enrolled, jobId, leaseId, record, key } = await runningJob()
  let attempts = 0
  {
    using _ = onStoreCall({
      before: async ({ command }) => {
        if (command.startsWith('TransactWrite')) await update(key, { set: { outputBytes: ++attempts } })
      },
    })
    await expectError(complete(enrolled.request(), jobId, completionReport(enrolled, leaseId)), 'conflict')
  }
  expect(attempts).toBe(4)
  expect((await record()).status).toBe('Running')
})

test('completes a job that exits despite a cancellation request', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  await Job.cancel(caller, jobId)
  const report = completionReport(enrolled, leaseId)
  expect(await complete(enrolled.request(), jobId, report)).toEqual({ jobId, status: 'Completed' })
})

test('a completion is idempotent, and the first different report is stored as late result', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const report = completionReport(enrolled, leaseId)
  await complete(enrolled.request(), jobId, report)
  expect(await complete(enrolled.request(), jobId, report)).toEqual({ jobId, status: 'Completed' })
  expect(await Job.read(caller, jobId)).not.toHaveProperty('lateResult')
  const failedNodes = report.nodes.map((node) => ({ ...node, exitCode: 1 }))
  const changes = [
    { exitCode: 7 },
    { exitCode: 8 },
    { outcome: 'interrupted' as const },
    { nodes: [] },
    { nodes: failedNodes },
  ]
  for (const change of changes) {
    await expectError(complete(enrolled.request(), jobId, { ...report, ...change }), 'job_already_finished')
  }
  const lateResult = { outcome: 'exited', exitCode: 7, reportedAt: expect.any(String) }
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Completed', lateResult })
})

async function runningJobs(count: number) {
  const { caller, enrolled } = await callerWithCluster()
  const jobs = Array.from({ length: count }, async () => {
    const jobId = await dispatchedJob(caller, enrolled)
    const { leaseId } = await claim(enrolled.request(), jobId, undefined)
    return { jobId, leaseId }
  })
  const started = await Promise.all(jobs)
  const jobIds = started.map(({ jobId }) => jobId)
  const reports = started.map(({ jobId, leaseId }, index) => ({ jobId, ...completionReport(enrolled, leaseId, index) }))
  return { caller, enrolled, reports, jobIds }
}

test('ends several jobs in one transaction, and a repeated request changes nothing', async () => {
  const { caller, enrolled, jobIds, reports } = await runningJobs(3)
  const results = ['Completed', 'Failed', 'Failed'].map((status, index) => ({ jobId: jobIds[index], status }))
  for (const transactions of [1, 0]) {
    const { result, usage } = await measureUsage(() => completeAll(enrolled.request(), reports))
    expect(result).toEqual(results)
    expect(usage.calls.filter((command) => command.startsWith('TransactWrite')).length).toBe(transactions)
  }
  expect(await readJobCounters(caller, enrolled)).toEqual([0, 0])
  expect((await readPendingEvents(caller, 'job.started')).map(({ subject }) => subject)).toEqual(jobIds)
  expect((await readPendingEvents(caller, 'job.failed')).map(({ data }) => data['exitCode'])).toEqual([1, 2])
})

test('ends each job separately if one of them changes concurrently', async () => {
  const { caller, enrolled, jobIds, reports } = await runningJobs(3)
  const [, second] = reports
  runBefore(/^TransactWrite/, () =>
    append(enrolled.request(), second?.jobId ?? '', outputChunk(second?.leaseId ?? '', 0, 'late')),
  )
  expect((await completeAll(enrolled.request(), reports)).map(({ error }) => error)).toEqual(Array(3).fill(undefined))
  expect((await Job.read(caller, jobIds[1] ?? '')).result?.output).toBe('late')
  expect(await readJobCounters(caller, enrolled)).toEqual([0, 0])
})

test('rejects individual reports and ends the other jobs', async () => {
  const { caller, enrolled, jobIds, reports } = await runningJobs(5)
  const [ended, leased, ordered, ...others] = reports
  if (ended === undefined || leased === undefined || ordered === undefined) throw new Error('No jobs')
  await complete(enrolled.request(), ended.jobId, ended)
  const output = {
    seq: 1,
    chunks: [{ nodeId: enrolled.relay.nodes[0]?.id ?? '', stream: 'stdout' as const, data: 'x' }],
  }
  const foreign = await runningJob()
  const results = await completeAll(enrolled.request(), [
    { ...ended, exitCode: 7 },
    { ...leased, leaseId: newId('lease') },
    { ...ordered, output },
    { ...leased, jobId: foreign.jobId },
    { ...leased, jobId: newId('job') },
    ...others,
  ])
  expect(results.map(({ status, error }) => status ?? error)).toEqual([
    'job_already_finished',
    'lease_not_held',
    'output_out_of_order',
    'job_not_found',
    'job_not_found',
    'Failed',
    'Failed',
  ])
  expect((await Job.read(caller, jobIds[0] ?? '')).lateResult).toMatchObject({ exitCode: 7 })
  expect(await readJobCounters(caller, enrolled)).toEqual([2, 0])
  expect((await foreign.record()).status).toBe('Running')
})

test('stores one of two concurrent late results', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const report = completionReport(enrolled, leaseId)
  await complete(enrolled.request(), jobId, report)
  const completeLate = (exitCode: number) => errorCodeOf(complete(enrolled.request(), jobId, { ...report, exitCode }))
  runBefore(/^TransactWrite/, () => completeLate(7))
  expect(await completeLate(8)).toBe('job_already_finished')
  expect((await Job.read(caller, jobId)).lateResult).toMatchObject({ exitCode: 7 })
})

test('stores output once per sequence number and rejects gaps', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const chunk = outputChunk(leaseId, 0, 'once')
  await Promise.all([1, 2, 3].map(() => append(enrolled.request(), jobId, chunk)))
  expect(await append(enrolled.request(), jobId, chunk)).toEqual({ nextSeq: 1, cancel: false })
  await expectError(append(enrolled.request(), jobId, { ...chunk, seq: 5 }), 'output_out_of_order')
  await expectError(append(enrolled.request(), jobId, { ...chunk, leaseId: 'lease_x' }), 'lease_not_held')
  expect((await readOutput(caller, jobId, 0)).items.map(({ data }) => data)).toEqual(['once'])
})

test('reads output from any offset', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  for (const [seq, data] of ['hel', 'lo\n'].entries()) {
    await append(enrolled.request(), jobId, outputChunk(leaseId, seq, data))
  }
  const items = [
    { offset: 1, data: 'el' },
    { offset: 3, data: 'lo\n' },
  ]
  expect(await readOutput(caller, jobId, 1)).toMatchObject({ items, nextOffset: 6, finished: false })
})

test('output has the time of its arrival, also after the end, and only where it changes', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const nodeId = enrolled.relay.nodes[0]?.id ?? ''
  const piece = { nodeId, stream: 'stdout', data: 'x' } as const
  await append(enrolled.request(), jobId, { leaseId, seq: 0, chunks: [piece, piece] })
  const hourMs = 3_600_000
  advanceClock(hourMs)
  const output = { seq: 1, chunks: [piece, piece] }
  await complete(enrolled.request(), jobId, { ...completionReport(enrolled, leaseId), output })
  const hoursSince = (at = '') => Math.round((now() - Date.parse(at)) / hourMs)
  const { items } = await readOutput(caller, jobId, 0)
  expect(items.map(({ at }) => hoursSince(at))).toEqual([1, Number.NaN, 0, Number.NaN])

  const { jobId: otherId, ...second } = await runningJob()
  await complete(second.enrolled.request(), otherId, {
    ...completionReport(second.enrolled, second.leaseId),
    output: { ...output, seq: 0 },
  })
  const { completedAt } = await Job.read(second.caller, otherId)
  expect((await readOutput(second.caller, otherId, 0)).items.map(({ at }) => at)).toEqual([completedAt, undefined])
})

async function resultOf(chunks: readonly string[], payload: object = {}) {
  const { caller, enrolled, jobId, leaseId } = await runningJob(payload)
  const nodeId = enrolled.relay.nodes[0]?.id ?? ''
  for (const [seq, data] of chunks.entries()) {
    await append(enrolled.request(), jobId, { ...outputChunk(leaseId, seq, data), nodeId })
  }
  const liveOutput = await readOutput(caller, jobId, 0)
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  const job = await Job.read(caller, jobId)
  return { live: liveOutput, job, result: job.result! }
}

async function outputOf(chunks: readonly (Buffer | { droppedBytes: number; bytes: Buffer })[]) {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const nodeId = enrolled.relay.nodes[0]?.id ?? ''
  const pieces = chunks.map((chunk, index) => {
    const { bytes, ...dropped } = Buffer.isBuffer(chunk) ? { bytes: chunk } : chunk
    const stream = index % 2 === 0 ? ('stdout' as const) : ('stderr' as const)
    return { nodeId, stream, data: bytes.toString('base64'), encoding: 'base64' as const, ...dropped }
  })
  for (let seq = 0; seq * 5 < pieces.length; seq++) {
    await append(enrolled.request(), jobId, { leaseId, seq, chunks: pieces.slice(seq * 5, seq * 5 + 5) })
  }
  const [liveOutput, { bytes }] = [await readOutput(caller, jobId, 0), await readBytes(caller, jobId, 0)]
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  return { live: liveOutput.items, bytes, result: (await Job.read(caller, jobId)).result! }
}

const random = Buffer.from(Array.from({ length: 5000 }, (_, index) => (index * 7919) % 256))
const text = Buffer.from('grün\n')

test.each([
  ['text', [text, Buffer.from('€\n')], undefined],
  ['a lone continuation byte', [Buffer.from([0x61, 0x80]), text], true],
  ['binary data', [random, text, random], true],
  ['many small chunks', Array.from({ length: 200 }, () => Buffer.from('.')), undefined],
])('returns the bytes of %s in order of arrival', async (_, chunks, binary) => {
  const { live, bytes, result } = await outputOf(chunks)
  const output = Buffer.concat(chunks)
  expect(bytes.equals(output)).toBe(true)
  expect(live.slice(0, 3).map(({ stream }) => stream)).toEqual(['stdout', 'stderr', 'stdout'].slice(0, chunks.length))
  const first = live[0]!
  expect(Buffer.from(first.data, first.encoding ?? 'utf8')).toEqual(chunks[0])
  expect(result).toMatchObject({ output: output.toString(), totalBytes: output.length, truncated: false })
  expect(result.binary).toBe(binary)
})

const lines = (from: number, to: number) =>
  Buffer.from(Array.from({ length: to - from }, (_, i) => `${from + i}\n`).join(''))

test.each([
  ['within lines', Buffer.from('1\n2\n3'), Buffer.from('4\n5\n6\n'), '1\n2\n[… 103 bytes', '5\n6\n'],
  ['between lines', Buffer.from('1\n2\n'), Buffer.from('5\n6\n'), '1\n2\n[… 102 bytes', '6\n'],
  ['in a long line', Buffer.from('12'), Buffer.from('3456'), '12\n[… 100 bytes', '3456'],
  ['in a character', Buffer.from('1\n€').subarray(0, 4), Buffer.from('2\n3\n'), '1\n[… 104 bytes', '3\n'],
])(
  'a line with the number of dropped bytes marks output that the relay dropped %s',
  async (_, head, tail, before, after) => {
    const { result, bytes } = await outputOf([head, { bytes: tail, droppedBytes: 100 }])
    expect(result.output).toBe(`${before} of the output of this job were dropped …]\n${after}`)
    expect(bytes.toString()).toBe(result.output)
    expect(result).toMatchObject({ truncated: true, totalBytes: head.length + 100 + tail.length })
    expect(result.nodes[0]?.output).toBe(result.output)
  },
)

test('a reader that continues where the relay dropped output gets each chunk once', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const nodeId = enrolled.relay.nodes[0]?.id ?? ''
  const piece = (data: string, droppedBytes?: number) => ({ nodeId, stream: 'stdout' as const, data, droppedBytes })
  await append(enrolled.request(), jobId, { leaseId, seq: 0, chunks: [piece('1\n')] })
  const { nextOffset } = await readOutput(caller, jobId, 0)
  await append(enrolled.request(), jobId, { leaseId, seq: 1, chunks: [piece('7\n8\n', 12), piece('9\n')] })
  const { items } = await readOutput(caller, jobId, nextOffset)
  // The first line after dropped output is incomplete, so it is omitted.
  expect(items.map(({ data }) => data).join('')).toBe('8\n9\n')
})

test('long output is cut between lines', async () => {
  const output = lines(1, 250_000)
  const parts = Array.from({ length: Math.ceil(output.length / 13_000) }, (_, i) =>
    output.subarray(i * 13_000, (i + 1) * 13_000),
  )
  const { result } = await outputOf(parts)
  const [head = '', marker = '', tail = ''] = result.output.split(/(\[….*…\]\n)/)
  expect(output.toString().startsWith(head) && output.toString().endsWith(tail)).toBe(true)
  expect([head.at(-1), output.toString().includes(`\n${tail}`)]).toEqual(['\n', true])
  expect(head.length + tail.length + Number(/\d+/.exec(marker))).toBe(output.length)
  expect(result).toMatchObject({ truncated: true, totalBytes: output.length })
  expect(result.output.length).toBeLessThanOrEqual(1_048_576)
})

test.each([
  [5000, 'rate_limited'],
  [3000, undefined],
  // The clock was set back.
  [1_800_000, undefined],
])('a job whose output is %i ms ahead of its rate: %s', async (aheadMs, code) => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  await update(keys.job(caller.organisationId, jobId), { set: { outputPaidAtMs: now() + aheadMs } })
  const appending = append(enrolled.request(), jobId, outputChunk(leaseId, 0, 'x'))
  await (code === undefined ? appending : expectError(appending, 'rate_limited'))
})

test('truncates output that JSON escapes enlarge beyond the response limit', async () => {
  const zeros = '\0'.repeat(65_000)
  const chunks = Array.from({ length: 16 }, (_, seq) => (seq === 0 ? `first${zeros}` : `${zeros}last`))
  const { live, job, result } = await resultOf(chunks)
  expect(JSON.stringify(live).length).toBeLessThan(6_000_000)
  expect(JSON.stringify(job).length).toBeLessThan(6_000_000)
  expect(result).toMatchObject({ truncated: true, totalBytes: 16 * 65_004 + 1 })
  expect(result.output).toMatch(/^first[^]*last$/)
})

test.each([
  ['line breaks', '\n', undefined],
  ['quotes', '"', undefined],
  ['quotes in lines', '"\n', undefined],
  ['quotes, with a script of line breaks', '"', '\n'],
  ['control characters, with a script of the same', '\u0001', '\u0001'],
])('a result with 1 MiB of %s fits into a function response', async (_, text, script) => {
  const data = text.repeat(65_536 / text.length)
  const payload = script && { script: script.repeat(262_144) }
  const { job, result } = await resultOf(Array<string>(16).fill(data), payload || {})
  const { output } = result
  expect(output.length).toBeGreaterThan(280_000)
  expect(result).toMatchObject({ totalBytes: 1_048_576, nodes: [{ output }], truncated: output.length < 1_048_576 })
  // Lambda encodes the body as a JSON string.
  expect(Buffer.byteLength(JSON.stringify({ body: JSON.stringify(job) }))).toBeLessThan(6_200_000)
})

test('a read of output never waits: it reads the job once', async () => {
  const { caller, jobId } = await waitingJob()
  const { result, usage } = await measureUsage(() => readOutput(caller, jobId, 0))
  expect(result).toEqual({ items: [], nextOffset: 0, status: 'Queued', finished: false })
  expect(usage.calls).toHaveLength(1)
})
