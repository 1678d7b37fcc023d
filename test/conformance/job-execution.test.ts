import { createHash, randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { expectStatus } from './support/answer.ts'
import { verifyJws } from './support/jws.ts'
import type { Platform } from './support/platform.ts'
import { test } from './support/test.ts'
import { waitFor } from '../support/wait-for.ts'

const outputPath = (jobId: string, offset = 0) => `/api/v1/jobs/${jobId}/output?offset=${offset}`
const outputOf = (items: { data: string }[]) => items.map(({ data }) => data).join('')

test('wakes a relay over its control channel, and sees whether the channel is open', async ({
  platform,
  admin,
  skip,
}) => {
  const relay = await platform.newRelay()
  const channel = await relay.openChannel()
  if (channel === undefined) return skip('the platform has no control channel')
  using mqtt = channel.mqtt
  expect([channel.code, channel.granted]).toEqual([0, [0]])
  const channelOf = async () => (await platform.cluster(relay.clusterId)).relay.channel
  await waitFor('the channel is open', async () => (await channelOf()) === 'open')
  const job = { clusterId: relay.clusterId, type: 'InvokeScript', payload: { script: 'true' } }
  const submitInBatch = async () => expectStatus(await admin.post('/api/v1/jobs/batch', { jobs: [job] }), 202).jobIds[0]
  for (const submit of [() => platform.submit(relay.clusterId), submitInBatch]) {
    const jobId = await submit()
    expect(await mqtt.next()).toMatchObject({ cmd: 'publish', topic: channel.topic, payload: Buffer.alloc(0) })
    await platform.waitForOffer(relay, jobId)
    expectStatus(await admin.post(`/api/v1/jobs/${jobId}/cancel`), 202)
  }
  mqtt.send({ cmd: 'disconnect' })
  await waitFor('the channel is closed', async () => (await channelOf()) === 'none')
})

test('returns a payload and a signed statement on claim', async ({ platform }) => {
  const relay = await platform.newRelay()
  const submittedPayload = { script: 'uname', timeoutSeconds: 60, targetNodeIds: relay.nodes.map(({ id }) => id) }
  const jobId = await platform.submit(relay.clusterId, submittedPayload)
  await platform.waitForOffer(relay, jobId)
  const { leaseId, leaseExpiresAt, statement, payload } = await relay.claim(jobId)
  const { header, claims } = verifyJws(statement, relay.keys)
  expect(payload).toEqual(submittedPayload)
  expect(header.typ).toBe('job-statement+jws')
  expect([claims.jobId, claims.clusterId]).toEqual([jobId, relay.clusterId])
  expect(claims.payloadSha256).toBe(createHash('sha256').update(JSON.stringify(payload)).digest('hex'))
  expect(claims.exp * 1000).toBeGreaterThan(Date.now())
  expect(Date.parse(leaseExpiresAt)).toBeGreaterThan(Date.now())
  const { status, startedAt } = await platform.job(jobId)
  expect(status).toBe('Running')
  expect(startedAt).toBeDefined()
  expectStatus(await relay.complete(jobId, leaseId, 0), 200)
})

test('runs a small job in two requests: a heartbeat that claims it, and a report with its output', async ({
  platform,
}) => {
  const relay = await platform.newRelay()
  const jobId = await platform.submit(relay.clusterId)
  await platform.waitForOffer(relay, jobId)
  const claimKey = randomUUID()
  const { claims, jobs, moreJobs } = expectStatus(await relay.heartbeat({ claimKey }), 200)
  expect([claims[0].jobId, jobs, moreJobs]).toEqual([jobId, [], false])
  expect(verifyJws(claims[0].statement, relay.keys).claims.jobId).toBe(jobId)
  const repeatedHeartbeat = expectStatus(await relay.heartbeat({ claimKey }), 200)
  expect(repeatedHeartbeat.claims.map(({ leaseId }: { leaseId: string }) => leaseId)).toEqual([claims[0].leaseId])
  expect(expectStatus(await relay.heartbeat({ claimKey: randomUUID() }), 200).claims).toEqual([])
  const output = { seq: 0, chunks: [{ nodeId: relay.nodes[0]?.id, stream: 'stdout', data: 'out\n' }] }
  for (let attempt = 0; attempt < 2; attempt++)
    expectStatus(await relay.complete(jobId, claims[0].leaseId, 0, output), 200)
  expect((await platform.job(jobId)).result.output).toBe('out\n')
})

test('ends several jobs with one request, which may be repeated', async ({ platform }) => {
  const relay = await platform.newRelay()
  const jobIds = [await platform.submit(relay.clusterId), await platform.submit(relay.clusterId)]
  const jobs = []
  for (const jobId of jobIds) {
    await platform.waitForOffer(relay, jobId)
    jobs.push({ jobId, leaseId: (await relay.claim(jobId)).leaseId })
  }
  const unknownId = `job_${'0'.repeat(26)}`
  const reports = [...jobs, { jobId: unknownId, leaseId: 'lease' }]
  for (const _ of ['first', 'repeated']) {
    const { results } = expectStatus(await relay.completeAll(reports, 0), 200)
    expect(results).toEqual([
      ...jobIds.map((jobId) => ({ jobId, status: 'Completed' })),
      { jobId: unknownId, error: 'job_not_found' },
    ])
  }
})

test('lets only the relay of the cluster claim a job, once', async ({ platform }) => {
  const [relay, otherRelay] = [await platform.newRelay(), await platform.newRelay()]
  const jobId = await platform.submit(relay.clusterId)
  await platform.waitForOffer(relay, jobId)
  await expect(otherRelay.claim(jobId)).rejects.toThrow(/job_not_found/)
  const claimKey = randomUUID()
  const claim = await relay.claim(jobId, claimKey)
  expect((await relay.claim(jobId, claimKey)).leaseId).toEqual(claim.leaseId)
  await expect(relay.claim(jobId)).rejects.toThrow(/job_not_claimable/)
  expect(expectStatus(await relay.heartbeat({ running: [jobId] }), 200).jobs).toEqual([])
  expectStatus(await otherRelay.complete(jobId, claim.leaseId, 0), 404, 'job_not_found')
  expectStatus(await relay.complete(jobId, 'lease_00000000000000000000000000', 0), 409, 'lease_not_held')
  expectStatus(await relay.complete(jobId, claim.leaseId, 0), 200)
  await expect(relay.claim(jobId)).rejects.toThrow(/job_not_claimable/)
})

test('streams output in order and accepts each chunk once', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const { jobId, leaseId } = await platform.startJob(relay)
  const read = async (offset = 0) => expectStatus(await admin.get(outputPath(jobId, offset)), 200)
  expect(await read()).toEqual({ items: [], nextOffset: 0, status: 'Running', finished: false })
  const firstOutput = expectStatus(await relay.output(jobId, { leaseId, seq: 0, data: 'Ω first\n' }), 200)
  expect(firstOutput).toEqual({ nextSeq: 1, cancel: false })
  const liveOutput = await read()
  expect([outputOf(liveOutput.items), liveOutput.nextOffset, liveOutput.finished]).toEqual(['Ω first\n', 9, false])
  expect(Date.parse(liveOutput.items[0].at)).toBeGreaterThanOrEqual(Date.parse((await platform.job(jobId)).startedAt))
  expect(expectStatus(await relay.output(jobId, { leaseId, seq: 0, data: 'Ω first\n' }), 200).nextSeq).toBe(1)
  expectStatus(await relay.output(jobId, { leaseId, seq: 2, data: 'third\n' }), 409, 'output_out_of_order')
  expectStatus(await relay.output(jobId, { leaseId, seq: 1, data: 'second\n', stream: 'stderr' }), 200)
  const laterOutput = await read(liveOutput.nextOffset)
  expect([outputOf(laterOutput.items), laterOutput.items[0].stream, laterOutput.nextOffset]).toEqual([
    'second\n',
    'stderr',
    16,
  ])
  expectStatus(await relay.complete(jobId, leaseId, 0), 200)
  expect(await read(16)).toEqual({ items: [], nextOffset: 16, status: 'Completed', finished: true })
  expectStatus(await relay.output(jobId, { leaseId, seq: 2, data: 'late\n' }), 409, 'job_already_finished')
  expect((await platform.job(jobId)).result.output).toBe('Ω first\nsecond\n')
})

test('completes a job on exit code 0 and fails it on any other', async ({ platform }) => {
  const relay = await platform.newRelay()
  for (const [exitCode, expected] of [
    [0, 'Completed'],
    [3, 'Failed'],
  ] as const) {
    const { jobId, leaseId } = await platform.startJob(relay)
    expectStatus(await relay.output(jobId, { leaseId, seq: 0, data: 'Linux\n' }), 200)
    const endedJob = expectStatus(await relay.complete(jobId, leaseId, exitCode), 200)
    expect(endedJob).toEqual({ jobId, status: expected })
    expect(expectStatus(await relay.complete(jobId, leaseId, exitCode), 200)).toEqual(endedJob)
    const { status, statusReason, result, completedAt } = await platform.job(jobId)
    expect([status, statusReason]).toEqual([expected, exitCode === 0 ? undefined : 'exit_nonzero'])
    expect(completedAt).toBeDefined()
    const nodes = [{ nodeId: relay.nodes[0]?.id, exitCode, output: 'Linux\n' }]
    const outputSha256 = createHash('sha256').update('Linux\n').digest('hex')
    expect(result).toEqual({ output: 'Linux\n', exitCode, nodes, truncated: false, totalBytes: 6, outputSha256 })
  }
})

test('stops a running job and cancels it when its relay confirms', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const { jobId, leaseId } = await platform.startJob(relay)
  const cancellation = expectStatus(await admin.post(`/api/v1/jobs/${jobId}/cancel`), 202)
  expect(cancellation.status).toBe('Running')
  expect(cancellation.cancelRequestedAt).toBeDefined()
  expect(expectStatus(await relay.heartbeat({ running: [jobId] }), 200).cancel).toEqual([jobId])
  expect(expectStatus(await relay.output(jobId, { leaseId, seq: 0, data: 'stopping\n' }), 200).cancel).toBe(true)
  expectStatus(await admin.delete(`/api/v1/clusters/${relay.clusterId}`), 409, 'cluster_has_active_jobs')
  expectStatus(await relay.complete(jobId, leaseId, 'cancelled'), 200)
  const { status, statusReason } = await platform.job(jobId)
  expect([status, statusReason]).toEqual(['Cancelled', 'cancelled_by_user'])
  expectStatus(await admin.delete(`/api/v1/clusters/${relay.clusterId}`), 204)
})

const outputFrom = async (platform: Platform, jobId: string, offset: number) =>
  expectStatus(await (await platform.admin).get(`${outputPath(jobId, offset)}&waitSeconds=20`), 200)

test('returns the output so far at once, with waitSeconds too, and then the end of the job', async ({ platform }) => {
  const relay = await platform.newRelay()
  const { jobId, leaseId } = await platform.startJob(relay)
  expect(await outputFrom(platform, jobId, 0)).toEqual({ items: [], nextOffset: 0, status: 'Running', finished: false })
  expectStatus(await relay.output(jobId, { leaseId, seq: 0, data: 'first\n' }), 200)
  const liveOutput = await outputFrom(platform, jobId, 0)
  expect([liveOutput.items[0]?.data, liveOutput.nextOffset, liveOutput.finished]).toEqual(['first\n', 6, false])
  expectStatus(await relay.complete(jobId, leaseId, 0), 200)
  expect(await outputFrom(platform, jobId, 6)).toEqual({
    items: [],
    nextOffset: 6,
    status: 'Completed',
    finished: true,
  })
})
