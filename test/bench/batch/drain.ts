import { setTimeout as delay } from 'node:timers/promises'
import { newRunner, type Runner } from '../one-machine/runner.ts'
import { ask, type RunningPlatform, startRunning } from '../one-machine/running.ts'
import { atMost, type Effort, type Section } from '../support/section.ts'
import { range, ratios, spread } from '../support/statistics.ts'
import { getting } from '../support/tenant.ts'
import { writeBare } from './bare.ts'
import { inTurn, jobsInBatch, sameScript, submission } from './submissions.ts'

/** How many jobs all relays of a batch run at once. */
const slots = 16
const pollMs = 25
const limits = {
  PLAT_LIMIT_API_PER_MINUTE: '1000000',
  PLAT_LIMIT_API_BURST: '1000000',
  PLAT_LIMIT_BATCH_PER_MINUTE: '1000000',
}

/** What one round of one kind of batch took. */
interface Round {
  /** From the 202 until a relay was told of the first job, and of all. */
  firstMs: number
  allMs: number
  /** Jobs a second until the batch was Finished: once all could be claimed, and from the 202 on. */
  drained: number
  wholly: number
  /** Jobs a second of the bare transactions. */
  bare: number
}

/** How fast the jobs of a batch get through a whole platform, with relays that complete them at once. */
export async function measureDrain({ isQuick }: Effort): Promise<Section> {
  await using platform = await startRunning(limits)
  const runners = await Promise.all(range(20).map(() => newRunner(platform, platform.accessToken)))
  const kinds = { '1 cluster': runners.slice(0, 1), ...(!isQuick && { [`${runners.length} clusters`]: runners }) }
  const rounds = Object.entries(kinds).map(([name, some]) => ({ name, some, measured: [] as Round[] }))
  for (const round of range(isQuick ? 1 : 4)) {
    for (const { some, measured } of rounds) {
      const result = await measureRound(platform, some)
      // The first round warms up, unless there is no other.
      if (round > 0 || isQuick) measured.push(result)
    }
  }
  return section(rounds)
}

async function measureRound(platform: RunningPlatform, runners: readonly Runner[]): Promise<Round> {
  const bare = await writeBare(platform.environment, jobsInBatch, slots)
  const watched = await submit(platform, runners)
  const { firstMs, allMs } = await watchInboxes(runners, watched.acceptedAtMs)
  const startedAtMs = performance.now()
  await drain(platform, runners, watched.batchId)
  const drained = perSecond(performance.now() - startedAtMs)
  const { batchId, acceptedAtMs } = await submit(platform, runners)
  await drain(platform, runners, batchId)
  return { firstMs, allMs, drained, wholly: perSecond(performance.now() - acceptedAtMs), bare: perSecond(bare) }
}

const perSecond = (ms: number): number => (jobsInBatch / ms) * 1000

async function submit({ url, accessToken }: RunningPlatform, runners: readonly Runner[]) {
  const clusterIds = inTurn(runners.map(({ clusterId }) => clusterId))
  const { batchId } = await ask(url, submission(accessToken, clusterIds, sameScript))
  return { batchId: String(batchId), acceptedAtMs: performance.now() }
}

/** When the first job, and when all of them stand in the inboxes. */
async function watchInboxes(runners: readonly Runner[], acceptedAtMs: number) {
  await Promise.any(runners.map(async (runner) => firstJob(runner)))
  const firstMs = performance.now() - acceptedAtMs
  for (const { beat } of runners) {
    const expected = Math.floor(jobsInBatch / runners.length)
    while ((await beat(jobsInBatch)).length < expected) await delay(pollMs)
  }
  return { firstMs, allMs: performance.now() - acceptedAtMs }
}

async function firstJob({ beat }: Runner): Promise<void> {
  while ((await beat(1, 1)).length === 0);
}

/** Runs every job as soon as a relay hears of it, until the batch is Finished. */
async function drain({ url, accessToken }: RunningPlatform, runners: readonly Runner[], batchId: string) {
  const finished = new AbortController()
  const slotsOfEach = Math.max(1, Math.floor(slots / runners.length))
  const working = runners.map((runner) => work(runner, slotsOfEach, finished.signal))
  const isFinished = async () => (await ask(url, getting(`/api/v1/jobs/batch/${batchId}`, accessToken))).finishedAt
  while ((await isFinished()) === undefined) await delay(pollMs)
  finished.abort()
  await Promise.all(working)
}

/** A relay's work: half of its slots may be empty before it asks for more. */
async function work({ beat, run }: Runner, slotsOfEach: number, finished: AbortSignal): Promise<void> {
  const underWay = new Map<string, Promise<void>>()
  while (!finished.aborted) {
    const jobIds = await beat(slotsOfEach, underWay.size === 0 ? 1 : 0)
    // A beat tells of jobs whose claim is on its way, too.
    for (const jobId of jobIds.filter((id) => !underWay.has(id))) {
      underWay.set(
        jobId,
        run(jobId).finally(() => underWay.delete(jobId)),
      )
    }
    while (underWay.size > slotsOfEach / 2) await Promise.race(underWay.values())
  }
  await Promise.all(underWay.values())
}

function section(kinds: readonly { name: string; measured: readonly Round[] }[]): Section {
  const median = (measured: readonly Round[], name: keyof Round) => spread(measured.map((round) => round[name])).median
  return {
    title: `One machine: the jobs of a batch of ${jobsInBatch}`,
    columns: [
      'batch for',
      'first claimable ms',
      'all claimable ms',
      'jobs/s, claimable',
      'jobs/s, accepted',
      'floor jobs/s',
      'ratio, median',
      'min',
      'max',
    ],
    rows: kinds.map(({ name, measured }) => {
      const of = (column: keyof Round) => median(measured, column)
      const ratio = ratios(
        measured.map(({ drained }) => drained),
        measured.map(({ bare }) => bare),
      )
      const times = [of('firstMs'), of('allMs'), of('drained'), of('wholly'), of('bare')]
      return [name, ...times, ratio.median, ratio.min, ratio.max]
    }),
    goals: kinds.flatMap(({ name, measured }) => [
      atMost(`batch for ${name}: first job claimable, ms`, median(measured, 'firstMs'), 500),
      atMost(`batch for ${name}: all jobs claimable, ms`, median(measured, 'allMs'), 5000),
    ]),
  }
}
