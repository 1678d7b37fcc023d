import type { Goal, Hope } from './section.ts'

/** One of the goals that were set before anything was built, and which of the measured ones it is made of. */
interface Yardstick {
  number: string
  goal: string
  /** Of the names of goals. */
  measured: RegExp
  /** Where it is misses that need words: what the distance is made of. */
  distance?: string
}

const yardsticks: readonly Yardstick[] = [
  {
    number: '1',
    goal: 'Warm GET of a cluster, CPU ≤ 1.10 × floor; a fresh token each ≤ 1.35',
    measured: /^GET \/clusters\/\{id\}(, a fresh token each)?: CPU, × floor/,
    distance:
      'A fresh token is verified by jose over WebCrypto, which hands the signature to a thread and back; the floor verifies in place, and checks less. A token is fresh once in its fifteen minutes in a process; peers that verify at each request take as long each time.',
  },
  {
    number: '2',
    goal: 'Warm POST /jobs, CPU ≤ 1.15 × floor',
    measured: /^POST \/jobs: CPU, × floor/,
    distance: 'The library that makes attribute maps of the transaction’s items; by hand the floor writes them faster.',
  },
  {
    number: '3',
    goal: 'Framework and authentication without the store ≤ 0.60 × floor, < 0.25 × NestJS',
    measured: /without the store: CPU/,
  },
  {
    number: '4',
    goal: '10,000 requests with 100 tokens: ≤ 100 signature checks; nothing tampered or expired gets in',
    measured: /^(signature checks|requests refused|tampered|expired)/,
  },
  {
    number: '5',
    goal: 'Every operation but setup and sign-in by a provider within its store calls, messages and secrets; no Scan anywhere',
    measured: /(^scans$|: (store calls|messages sent|secrets read)$)/,
  },
  {
    number: '6',
    goal: 'Batch of 500: ≤ 7 calls, ≤ 3 rounds, ≤ 0.15 or 1.5 write units a job, time ≤ 0.15 × one call after another',
    measured: /^batch, .*: (calls|rounds|write units of a job|time, × serial)$/,
    distance:
      'Three rounds over the network are three rounds: a bare handler that makes the same calls by hand takes 0.14 to 0.16 of the serial one, see “floor ms”. What it takes more than that floor is in “CPU ms”: 500 schemas and their compression.',
  },
  {
    number: '7',
    goal: 'Expansion: first job claimable ≤ 0.5 s, all 500 ≤ 5 s after the 202; one message',
    measured: /^batch for .*(claimable, ms|expanded: messages)$/,
  },
  {
    number: '8',
    goal: '100,000 clusters: any page ≤ 2 calls and ≤ 10 read units; filtered ≤ 3 calls at the ends, ≤ 2 + N/7,500 anywhere; last ≤ 1.5 × first',
    measured: /^page, /,
    distance: 'A page that begins at the end of a bucket reads the rows before it in vain: 14 units.',
  },
  {
    number: '9',
    goal: 'GET by id at 100,000 clusters: ≤ 1.2 × the time at 100, the same read units',
    measured: /^GET by id/,
  },
  {
    number: '10',
    goal: 'Idle hour of a relay: ≤ 120 reads of 0.5 units, ≤ 120 write units, ≤ 30 index writes, ≤ 6 log lines, ≤ $0.22 a month',
    measured: /^(idle hour: |dollars: a month of an idle relay)/,
    distance:
      'Each beat leaves the line that every request leaves, so that traces lead somewhere, and its metrics; they are a sixth of what a relay costs. `PLAT_LOG_LEVEL=warn` leaves out the line, `PLAT_METRICS: off` the metrics.',
  },
  {
    number: '11',
    goal: 'Sweep of N clusters: ≤ 1 + N/7,000 calls and no write where nothing is due, ≤ n + 1 writes for n flips, tallies exact',
    measured: /^sweep/,
    distance: 'It asks four shards of the index, whatever the fleet.',
  },
  {
    number: '12',
    goal: 'First answer of every function, CPU ≤ 1.30 × floor (1.12 with a compile cache), ≤ 0.55 × NestJS; memory ≤ 1.10 × floor',
    measured: /(CPU until the first answer|memory at its first answer)/,
    distance:
      'With a compile cache alone: of those that have their floor `jobs` and `portal-data` load the most before the first answer, and the latter asks the store for three things at once, its floor for one. What is left out, and what comes late: [decision 23](../docs/decisions/0023-bundles.md).',
  },
  {
    number: '13',
    goal: 'Every function ≤ 540 KiB, ≤ 170 KiB gzip, nothing in it that it does not need',
    measured: /: (KiB at first|KiB at first, gzip|unwanted code at first)$/,
  },
  {
    number: '14',
    goal: 'One machine: start ≤ 50 × `node -e 0`; throughput ≥ 0.80 × floor, p99 ≤ 1.4 × (memory over ten minutes: `npm run proof`)',
    measured: /^(start of the platform|requests\/s of the floor|p99 of the platform)/,
  },
  {
    number: '15',
    goal: 'Largest batch: CPU ≤ 16 × JSON.parse, no block > 40 ms; a refusal asks the store nothing',
    measured: /^(largest batch|batches that are refused)/,
    distance:
      'The SDK writes 3 MB of Base64 and its JSON, hashes and signs it: the floor, which does nothing else, takes nearly as many times JSON.parse. Against the floor the platform stays within 1.3.',
  },
  {
    number: '16',
    goal: 'Money: a million reads ≤ $1.60, a million jobs of batches ≤ $6, a month in which nobody comes ≤ $1.50',
    measured: /^dollars: (?!.*relay)/,
    distance:
      'Reads: the two log lines of a request and its metrics make the difference. Jobs: the goal counted a batch’s acceptance and its result; here each job is claimed under a lease, reported, and entered into audit, timeline, totals and webhooks, each step durable: 78 write units. Idle: 29 alarms, their metrics and a dashboard take $11.40 of $15.15; the rest is $3.75, of which nine queues are $2.37. What each choice saves and loses is in [the model](../docs/cost-and-scale.md#what-would-make-it-cheaper).',
  },
  {
    number: 'G22',
    goal: 'Latency on one machine: GET p99 ≤ 50 ms at 200/s, POST /jobs ≤ 100 at 100/s, 500 jobs ≤ 2.5 s, login ≤ 400 at 10/s, health ≤ 20 in a flood',
    measured: /: p99, ms$/,
    distance:
      'Milliseconds of the machine that is named below: gateway, function, store and the callers share its two processors, and at these rates they wait for each other. What only the platform decides is held by the ratios of goals 1, 2 and 14.',
  },
  {
    number: 'G23',
    goal: 'A flood of one tenant: its neighbour’s p50 ≤ 2 × idle (first aimed at: p99)',
    measured: /^neighbour of /,
    distance:
      'Ten users within their limits, 200 to 380 accepted requests a second on the two processors that also run the flood, the store and the neighbour: that is load, not unfairness. Where the limits refuse a flood of calls, the median hardly moves. Batches of 500 within the limit are work that the same processors do, and what is refused has been received: the median of their neighbour was 1.1 to 2.4 times that of an idle machine. The slowest twentieth waits up to nine times as long (p95 below). In the cloud functions do not share processors.',
  },
]

type Settled = Goal | Hope

const shown = (value: number): string => String(Number(value.toPrecision(3)))
const nearness = ({ measured, limit, isMet }: Settled): number =>
  limit === 0 ? (isMet ? 0 : Number.POSITIVE_INFINITY) : measured / limit
const figureOf = ({ name, measured, limit }: Settled): string => `${name} ${shown(measured)} of ${shown(limit)}`

/** What was measured of a goal: all of it where that is little, else what is nearest to its limit, or farthest beyond. */
function figures(goals: readonly Settled[]): string {
  const [worst] = goals.toSorted((one, other) => nearness(other) - nearness(one))
  if (worst === undefined) return ''
  const most = figureOf(worst)
  return goals.length === 1 ? most : `${goals.filter(({ isMet }) => isMet).length} of ${goals.length}; ${most}`
}

/** Met wholly, in part, not at all, or not measured. */
function verdict(goals: readonly Settled[]): string {
  if (goals.length === 0) return 'not measured'
  if (goals.every(({ isMet }) => isMet)) return 'met'
  return goals.some(({ isMet }) => isMet) ? 'in part' : 'missed'
}

/** Every goal as a row: number, goal, figure, verdict, and what a distance is made of. */
export const goalRows = (goals: readonly Settled[]): string[][] =>
  yardsticks.map(({ number, goal, measured, distance = '' }) => {
    const own = goals.filter(({ name }) => measured.test(name))
    const isMet = own.every((each) => each.isMet)
    return [number, goal, figures(own), verdict(own), isMet ? '' : distance]
  })
