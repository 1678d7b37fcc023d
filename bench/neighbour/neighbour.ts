import { setTimeout as delay } from 'node:timers/promises'
import { type Sent, posting } from '../../test/support/event.ts'
import { inTurn, sameScript, submission } from '../batch/submissions.ts'
import { newRunner } from '../one-machine/runner.ts'
import { ask, type RunningPlatform, startRunning } from '../one-machine/running.ts'
import { atMost, type Effort, type Section } from '../support/section.ts'
import { percentile, range, spread } from '../support/statistics.ts'
import { bearer, getting, registration } from '../support/tenant.ts'
import { calm } from './calm.ts'
import { flooded } from './flood.ts'
import type { Answers, Flood } from './flood-process.ts'
import { type Latencies, type Neighbour, probe } from './probe.ts'
import { newTenant } from './tenants.ts'

/** The limits of the deployment (D34); on one machine they are higher. */
const limits = {
  PLAT_LIMIT_API_PER_MINUTE: '600',
  PLAT_LIMIT_API_BURST: '100',
  PLAT_LIMIT_BATCH_PER_MINUTE: '10',
}
const users = 10

/** What the neighbour noticed while somebody flooded the platform, or nobody did. */
interface Noticed {
  readP50: number
  readP95: number
  jobP50: number
  jobP95: number
  accepted: number
  refused: number
}

/** What one tenant notices when another one sends all it can. */
export async function measureNeighbour({ isQuick }: Effort): Promise<Section> {
  await using platform = await startRunning(limits)
  const { url } = platform
  const [reader = '', submitter = ''] = await newTenant(platform, 2)
  const neighbour = { url, reader, submitter, runner: await newRunner(platform, submitter) }
  const floods = await floodsOf(platform)
  const [rounds, durationMs] = isQuick ? [1, 2000] : [3, 6000]
  const noticed = new Map<string, Noticed[]>(Object.keys(floods).map((name) => [name, []]))
  await probe(neighbour, durationMs)
  for (const _ of range(rounds)) {
    for (const [name, volleys] of Object.entries(floods)) {
      await calm(platform)
      noticed.get(name)?.push(await notice(neighbour, { url, volleys }, durationMs))
    }
  }
  return section(noticed)
}

async function floodsOf(platform: RunningPlatform): Promise<Record<string, Flood['volleys']>> {
  const { url } = platform
  const tokens = await newTenant(platform, users)
  const [first = ''] = tokens
  const { id: clusterId } = await ask(url, registration(first))
  const job = { clusterId, type: 'InvokeScript', payload: { script: 'uname' } }
  const calls = (token: string): Sent[] => [
    getting(`/api/v1/clusters/${clusterId}`, token),
    posting('/api/v1/jobs', job, bearer(token)),
  ]
  const batches = (token: string): Sent[] => [submission(token, inTurn([clusterId]), sameScript)]
  return {
    nobody: [],
    'one user, 32 connections: API calls': [{ connections: 32, requests: calls(first) }],
    'one user, 8 connections: batches': [{ connections: 8, requests: batches(first) }],
    [`${users} users, 40 connections: both`]: [
      { connections: 32, requests: tokens.flatMap(calls) },
      { connections: 8, requests: tokens.flatMap(batches) },
    ],
  }
}

async function notice(neighbour: Neighbour, flood: Flood, durationMs: number): Promise<Noticed> {
  const { result, answers } = await flooded(flood, async () => {
    await delay(flood.volleys.length === 0 ? 0 : 500)
    return probe(neighbour, durationMs)
  })
  return { ...quantiles(result), ...perSecond(answers, durationMs + 500) }
}

const quantiles = ({ reads, jobs }: Latencies) => ({
  readP50: percentile(reads, 0.5),
  readP95: percentile(reads, 0.95),
  jobP50: percentile(jobs, 0.5),
  jobP95: percentile(jobs, 0.95),
})

function perSecond(answers: Answers, durationMs: number) {
  const all = Object.values(answers).reduce((sum, count) => sum + count, 0)
  const accepted = (answers[200] ?? 0) + (answers[202] ?? 0)
  return { accepted: (accepted / durationMs) * 1000, refused: ((all - accepted) / durationMs) * 1000 }
}

function section(noticed: ReadonlyMap<string, readonly Noticed[]>): Section {
  const median = (name: string, column: keyof Noticed) =>
    spread((noticed.get(name) ?? []).map((round) => round[column])).median
  const slowdown = (name: string, column: keyof Noticed) => median(name, column) / median('nobody', column)
  const names = [...noticed.keys()]
  return {
    title: 'One machine: a tenant whose neighbour floods the platform',
    notes: [
      'The limits are those of the deployment (600 calls a minute and user with bursts of 100, 10 batches a minute and organisation), the machine is one: flood, platform, store and neighbour share its processors. The flood sends its next request as soon as the last one is answered; what is beyond a limit is refused. The neighbour reads one cluster every 100 ms, and submits jobs one after another: until the relay is told of it.',
    ],
    columns: [
      'flood',
      'accepted/s',
      'refused/s',
      'read p50 ms',
      '× idle',
      'read p95 ms',
      '× idle',
      'job p50 ms',
      '× idle',
      'job p95 ms',
      '× idle',
    ],
    rows: names.map((name) => [
      name,
      median(name, 'accepted'),
      median(name, 'refused'),
      ...(['readP50', 'readP95', 'jobP50', 'jobP95'] as const).flatMap((column) => [
        median(name, column),
        slowdown(name, column),
      ]),
    ]),
    goals: names
      .slice(1)
      .flatMap((name) => [
        atMost(`neighbour of ${name}: p50 of a read, × idle`, slowdown(name, 'readP50'), 2),
        atMost(`neighbour of ${name}: p50 until a job is claimable, × idle`, slowdown(name, 'jobP50'), 2),
      ]),
  }
}
