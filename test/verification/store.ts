import { setTimeout as delay } from 'node:timers/promises'
import { waitFor } from '../support/wait-for.ts'
import type { StoreFaults as FaultSettings } from '../support/emulators/store-faults.ts'
import { outcomeOf } from './load/kept.ts'
import { type MixedLoad, startMixedLoad } from './load/mixed.ts'
import { percent } from './load/tally.ts'
import { atLeast, atMost, type Effort, type Figure, none, type Part } from './part.ts'
import { type Faults, storeFaultsOf } from './support/emulators.ts'

const hostile: Partial<FaultSettings> = {
  throttleRate: 0.1,
  lostAcknowledgementRate: 0.02,
  hangRate: 0.01,
  unprocessedRate: 0.1,
  transactionConflictRate: 0.05,
}

/** How long a platform may need to be as before once its store is. */
const recoverySeconds = 5

interface Phase {
  name: string
  faults: Partial<FaultSettings>
  seconds: number
  /** How long the load goes on afterwards. */
  afterSeconds: number
}

const phasesOf = ({ isShort, seed }: Effort): Phase[] => [
  { name: 'hostile store', faults: { ...hostile, seed }, seconds: isShort ? 3 : 240, afterSeconds: isShort ? 1 : 10 },
  {
    name: 'half of all calls throttled',
    faults: { throttleRate: 0.5, seed },
    seconds: isShort ? 0 : 30,
    afterSeconds: 10,
  },
]

async function prove(effort: Effort): Promise<Figure[]> {
  const { isShort, seed, say } = effort
  await using load = await startMixedLoad({ customers: isShort ? 2 : 6, seed })
  const faults = await storeFaultsOf(load.platform)
  const figures: Figure[] = []
  for (const phase of phasesOf(effort).filter(({ seconds }) => seconds > 0)) {
    figures.push(...(await suffer(load, faults, phase, say)))
  }
  figures.push(...(await withoutStore(load, faults, isShort ? 1 : 15)))
  const calls = load.tally.calls
  say('comparing with what was promised')
  const { promised, lost, duplicates } = await outcomeOf(load)
  for (const line of [...lost, ...duplicates].slice(0, 20)) say(line)
  if (lost.length > 0) await tellMore(load, say)
  const { tally } = load
  for (const line of [...tally.faults, ...tally.violations, ...tally.surprises].slice(0, 20)) say(line)
  return [
    none('answers with 500', tally.faults.length, `${tally.answers}`),
    none('answers unlike the contract, a 503 without `Retry-After` among them', tally.violations.length),
    none('connections without an answer', tally.unanswered.length),
    none('calls that were refused for no reason', tally.surprises.length, `${calls}`),
    ...figures,
    none('promises that were lost', lost.length, `${promised}`),
    none('things done, listed, told or recorded twice', duplicates.length),
  ]
}

/** What helps to find out why something was lost. */
async function tellMore({ platform, relay }: MixedLoad, say: Effort['say']): Promise<void> {
  const metrics = await (await fetch(`${platform.url}/metrics`)).text()
  for (const line of metrics.split('\n'))
    if (/^platform_(?:queue|messages|schedule_runs|function_timeouts)/.test(line)) say(line)
  for (const text of [relay.text, platform.text])
    for (const line of text.split('\n').slice(-20)) say(line.slice(0, 600))
}

/** The load in one kind of weather, and how long after it the platform still suffers. */
async function suffer(
  load: MixedLoad,
  faults: Faults<FaultSettings>,
  phase: Phase,
  say: Effort['say'],
): Promise<Figure[]> {
  const { tally } = load
  const before = { ...tally, givenUp: tally.givenUp.length }
  await faults.set(phase.faults)
  const end = load.begin()
  for (let second = 0; second < phase.seconds; second++) {
    await delay(1000)
    if (second % 20 === 19) say(`${phase.name}: ${tally.calls} calls, ${tally.answers} answers`)
  }
  await faults.clear()
  const clearedAtMs = performance.now()
  await delay(phase.afterSeconds * 1000)
  await end()
  const calls = tally.calls - before.calls
  const decided = calls - (tally.givenUp.length - before.givenUp)
  const atOnce = percent(tally.decidedAtOnce - before.decidedAtOnce, calls).toPrecision(4)
  const sufferedSeconds = Math.max(0, tally.lastUndecidedAtMs - clearedAtMs) / 1000
  return [
    atLeast(
      `${phase.name}: calls that were decided, with repeats (${atOnce} % of ${calls} at once)`,
      percent(decided, calls),
      99,
      ' %',
    ),
    atMost(
      `${phase.name}: until the last call that had to be repeated, once it is over`,
      sufferedSeconds,
      recoverySeconds,
      ' s',
    ),
  ]
}

/** No call of the store succeeds: every answer says so and when to come again, and readiness says so, too. */
async function withoutStore(
  { platform, api }: MixedLoad,
  faults: Faults<FaultSettings>,
  seconds: number,
): Promise<Figure[]> {
  const admin = await api.admin
  await faults.set({ throttleRate: 1 })
  const endMs = performance.now() + seconds * 1000
  const statuses: number[] = []
  do {
    for (const path of ['/api/v1/clusters', '/api/v1/jobs', '/api/v1/auth/me']) {
      statuses.push((await admin.attempt('GET', path)).status)
      statuses.push((await admin.attempt('POST', '/api/v1/sites', { json: { name: 'never' } })).status)
    }
  } while (performance.now() < endMs)
  const isReady = async () => (await fetch(`${platform.url}/health/ready`)).status === 200
  const saidReady = await isReady()
  await faults.clear()
  const clearedAtMs = performance.now()
  await waitFor(
    'the platform is ready again',
    async () => (await isReady()) && (await admin.attempt('GET', '/api/v1/clusters')).status === 200,
  )
  const others = statuses.filter((status) => status !== 503)
  return [
    none('all calls throttled: answers other than 503 with `Retry-After`', others.length, `${statuses.length}`),
    none('all calls throttled: readiness says ready', saidReady ? 1 : 0),
    atMost(
      'all calls throttled: until it is ready and answers, once it is over',
      (performance.now() - clearedAtMs) / 1000,
      recoverySeconds,
      ' s',
    ),
  ]
}

export const part: Part = {
  title: 'A hostile store',
  how:
    'Customers register, submit, batch, cancel, refresh, and relays claim and complete, over HTTP against the real platform, while its store ' +
    'throttles 10 % of the calls, loses 2 % of the answers, never answers 1 %, hands entries of batches back and cancels transactions. A ' +
    'client repeats as the command line does (docs/cli.md). In the end everything is compared with what was answered.',
  run: prove,
}
