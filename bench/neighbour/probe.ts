import { setTimeout as delay } from 'node:timers/promises'
import { posting } from '../../test/support/event.ts'
import type { Runner } from '../one-machine/runner.ts'
import { ask } from '../one-machine/running.ts'
import { bearer, getting } from '../support/tenant.ts'

/** A quiet tenant: one user who reads, one who submits, and a relay. */
export interface Neighbour {
  url: string
  reader: string
  submitter: string
  runner: Runner
}

/** Milliseconds of what the neighbour does. */
export interface Latencies {
  /** GET /clusters/{id} */
  reads: number[]
  /** From the submission of a job until its relay is told of it. */
  jobs: number[]
}

/** A minute's worth of calls at this pace is what a user may make. */
const paceMs = 100

/** Lets the neighbour work for a while. */
export async function probe(neighbour: Neighbour, durationMs: number): Promise<Latencies> {
  const endMs = performance.now() + durationMs
  const [reads, jobs] = await Promise.all([readUntil(neighbour, endMs), submitUntil(neighbour, endMs)])
  return { reads, jobs }
}

async function readUntil({ url, reader, runner }: Neighbour, endMs: number): Promise<number[]> {
  const request = getting(`/api/v1/clusters/${runner.clusterId}`, reader)
  const times: number[] = []
  while (performance.now() < endMs) {
    const startedAtMs = performance.now()
    await ask(url, request)
    times.push(performance.now() - startedAtMs)
    await delay(paceMs)
  }
  return times
}

async function submitUntil({ url, submitter, runner }: Neighbour, endMs: number): Promise<number[]> {
  const submission = { clusterId: runner.clusterId, type: 'InvokeScript', payload: { script: 'uname' } }
  const request = posting('/api/v1/jobs', submission, bearer(submitter))
  const times: number[] = []
  while (performance.now() < endMs) {
    const startedAtMs = performance.now()
    // The relay's beat is held by then, as it is most of the time.
    const told = runner.beat(1, 5)
    const { id } = await ask(url, request)
    if (!(await told).includes(id)) await untilTold(runner, id)
    times.push(performance.now() - startedAtMs)
    await runner.run(id)
    await delay(paceMs)
  }
  return times
}

async function untilTold({ beat }: Runner, jobId: string): Promise<void> {
  while (!(await beat(1, 5)).includes(jobId));
}
