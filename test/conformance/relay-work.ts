import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { answered } from './support/answer.ts'
import { verifyJws } from './support/jws.ts'
import type { Journeys } from './support/platform.ts'

const outputPath = (jobId: string, offset = 0) => `/api/v1/jobs/${jobId}/output?offset=${offset}`
const outputOf = (items: { data: string }[]) => items.map(({ data }) => data).join('')

export const relayWork: Journeys = {
  'a waiting relay is told of a new job without asking again and again': async (platform, report) => {
    const relay = await platform.newRelay()
    answered(await relay.beat(), 200)
    const waiting = relay.beat({}, 'wait=5')
    const jobId = await platform.submit(relay.clusterId)
    const acceptedMs = performance.now()
    const { headers } = await waiting
    await platform.told(relay, jobId)
    const isHeld = headers.has('preference-applied') ? 'held' : 'not held'
    report.diagnostic(
      `told ${Math.round(performance.now() - acceptedMs)} ms after the job was accepted; the beat was ${isHeld}`,
    )
    answered(await (await platform.admin).post(`/api/v1/jobs/${jobId}/cancel`), 202)
  },

  'a claim brings the payload and a statement that the pinned keys verify': async (platform) => {
    const relay = await platform.newRelay()
    const sent = { script: 'uname', timeoutSeconds: 60, targetNodeIds: relay.nodes.map(({ id }) => id) }
    const jobId = await platform.submit(relay.clusterId, sent)
    await platform.told(relay, jobId)
    const { leaseId, leaseExpiresAt, statement, payload } = await relay.claim(jobId)
    const { header, claims } = verifyJws(statement, relay.keys)
    assert.deepEqual(payload, sent)
    assert.equal(header.typ, 'job-statement+jws')
    assert.deepEqual([claims.jobId, claims.clusterId], [jobId, relay.clusterId])
    assert.equal(claims.payloadSha256, createHash('sha256').update(JSON.stringify(payload)).digest('hex'))
    assert.ok(claims.exp * 1000 > Date.now() && Date.parse(leaseExpiresAt) > Date.now())
    const { status, startedAt } = await platform.job(jobId)
    assert.ok(status === 'Running' && startedAt !== undefined)
    answered(await relay.complete(jobId, leaseId, 0), 200)
  },

  'a job is claimed once, by its own relay; only the claim itself may be repeated': async (platform) => {
    const [relay, stranger] = [await platform.newRelay(), await platform.newRelay()]
    const jobId = await platform.submit(relay.clusterId)
    await platform.told(relay, jobId)
    await assert.rejects(stranger.claim(jobId), /job_not_found/)
    const claimKey = randomUUID()
    const claim = await relay.claim(jobId, claimKey)
    assert.deepEqual((await relay.claim(jobId, claimKey)).leaseId, claim.leaseId)
    await assert.rejects(relay.claim(jobId), /job_not_claimable/)
    assert.deepEqual(answered(await relay.beat({ running: [jobId] }), 200).jobs, [])
    answered(await stranger.complete(jobId, claim.leaseId, 0), 404, 'job_not_found')
    answered(await relay.complete(jobId, 'lease_00000000000000000000000000', 0), 409, 'lease_not_held')
    answered(await relay.complete(jobId, claim.leaseId, 0), 200)
    await assert.rejects(relay.claim(jobId), /job_not_claimable/)
  },

  'output is read while it is written, in order, each call once': async (platform) => {
    const admin = await platform.admin
    const relay = await platform.newRelay()
    const { jobId, leaseId } = await platform.running(relay)
    const read = async (offset = 0) => answered(await admin.get(outputPath(jobId, offset)), 200)
    assert.deepEqual(await read(), { items: [], nextOffset: 0, status: 'Running', finished: false })
    const first = answered(await relay.output(jobId, { leaseId, seq: 0, data: 'Ω first\n' }), 200)
    assert.deepEqual(first, { nextSeq: 1, cancel: false })
    const live = await read()
    assert.deepEqual([outputOf(live.items), live.nextOffset, live.finished], ['Ω first\n', 9, false])
    assert.equal(answered(await relay.output(jobId, { leaseId, seq: 0, data: 'Ω first\n' }), 200).nextSeq, 1)
    answered(await relay.output(jobId, { leaseId, seq: 2, data: 'third\n' }), 409, 'output_out_of_order')
    answered(await relay.output(jobId, { leaseId, seq: 1, data: 'second\n', stream: 'stderr' }), 200)
    const rest = await read(live.nextOffset)
    assert.deepEqual([outputOf(rest.items), rest.items[0].stream, rest.nextOffset], ['second\n', 'stderr', 16])
    answered(await relay.complete(jobId, leaseId, 0), 200)
    assert.deepEqual(await read(16), { items: [], nextOffset: 16, status: 'Completed', finished: true })
    answered(await relay.output(jobId, { leaseId, seq: 2, data: 'late\n' }), 409, 'job_already_finished')
    assert.equal((await platform.job(jobId)).result.output, 'Ω first\nsecond\n')
  },

  'exit 0 completes a job, any other exit code fails it, with the result': async (platform) => {
    const relay = await platform.newRelay()
    for (const [exitCode, expected] of [
      [0, 'Completed'],
      [3, 'Failed'],
    ] as const) {
      const { jobId, leaseId } = await platform.running(relay)
      answered(await relay.output(jobId, { leaseId, seq: 0, data: 'Linux\n' }), 200)
      const ended = answered(await relay.complete(jobId, leaseId, exitCode), 200)
      assert.deepEqual(ended, { jobId, status: expected })
      assert.deepEqual(answered(await relay.complete(jobId, leaseId, exitCode), 200), ended)
      const { status, statusReason, result, completedAt } = await platform.job(jobId)
      assert.deepEqual([status, statusReason], [expected, exitCode === 0 ? undefined : 'exit_nonzero'])
      assert.ok(completedAt !== undefined)
      const nodes = [{ nodeId: relay.nodes[0]?.id, exitCode, output: 'Linux\n' }]
      assert.deepEqual(result, { output: 'Linux\n', exitCode, nodes, truncated: false, totalBytes: 6 })
    }
  },

  'every other way to fail has its reason': async (platform) => {
    const relay = await platform.newRelay()
    const reasons = { timed_out: 'execution_timeout', rejected: 'relay_rejected', interrupted: 'interrupted' }
    for (const [outcome, reason] of Object.entries(reasons)) {
      const { jobId, leaseId } = await platform.running(relay)
      answered(await relay.complete(jobId, leaseId, outcome), 200)
      const { status, statusReason } = await platform.job(jobId)
      assert.deepEqual([status, statusReason], ['Failed', reason])
    }
  },

  'a report after the end changes nothing and is kept': async (platform) => {
    const relay = await platform.newRelay()
    const { jobId, leaseId } = await platform.running(relay)
    answered(await relay.complete(jobId, leaseId, 'interrupted'), 200)
    answered(await relay.complete(jobId, leaseId, 0), 409, 'job_already_finished')
    const { status, statusReason, lateResult } = await platform.job(jobId)
    assert.deepEqual([status, statusReason], ['Failed', 'interrupted'])
    assert.deepEqual([lateResult.outcome, lateResult.exitCode], ['exited', 0])
  },

  'a running job is asked to stop, and is Cancelled when its relay confirms': async (platform) => {
    const admin = await platform.admin
    const relay = await platform.newRelay()
    const { jobId, leaseId } = await platform.running(relay)
    const asked = answered(await admin.post(`/api/v1/jobs/${jobId}/cancel`), 202)
    assert.ok(asked.status === 'Running' && asked.cancelRequestedAt !== undefined)
    assert.deepEqual(answered(await relay.beat({ running: [jobId] }), 200).cancel, [jobId])
    assert.equal(answered(await relay.output(jobId, { leaseId, seq: 0, data: 'stopping\n' }), 200).cancel, true)
    answered(await admin.delete(`/api/v1/clusters/${relay.clusterId}`), 409, 'cluster_has_active_jobs')
    answered(await relay.complete(jobId, leaseId, 'cancelled'), 200)
    const { status, statusReason } = await platform.job(jobId)
    assert.deepEqual([status, statusReason], ['Cancelled', 'cancelled_by_user'])
    answered(await admin.delete(`/api/v1/clusters/${relay.clusterId}`), 204)
  },

  'of much output the first 256 KiB and the last 768 KiB are kept': async (platform) => {
    const relay = await platform.newRelay()
    const { jobId, leaseId } = await platform.running(relay)
    const chunks = Array.from({ length: 20 }, (_, seq) => String.fromCodePoint(97 + seq).repeat(65_536))
    for (const [seq, data] of chunks.entries()) answered(await relay.output(jobId, { leaseId, seq, data }), 200)
    answered(await relay.complete(jobId, leaseId, 0), 200)
    const { result } = await platform.job(jobId)
    assert.deepEqual([result.truncated, result.totalBytes], [true, 20 * 65_536])
    assert.ok(result.output === chunks.slice(0, 4).join('') + chunks.slice(8).join(''))
  },
}
