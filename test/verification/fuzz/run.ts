import { readFileSync } from 'node:fs'
import { operationsOf } from '../../conformance/support/document.ts'
import { type Row, rows } from '../../functions/table.ts'
import { writes } from '../../functions/writes.ts'
import { type TestResponse, send } from '../../support/request.ts'
import { type Random, randomOf, seedFor } from '../random.ts'
import { type Sender, senderOf, withoutSuccess } from './goods.ts'
import { type Judge, judgeOf } from './judge.ts'
import { isPolluted } from './prototypes.ts'
import { changedRequest, type Good, type Operation, type Wire, wireOf } from './request.ts'
import { shrunk } from './shrink.ts'

/** What is counted over many requests; what fails is told by its smallest form. */
export interface Tally {
  requests: number
  malformed: number
  /** By status. */
  statuses: Record<number, number>
  /** What was seen that must not be, by kind, each request in words. */
  failures: Record<Kind, string[]>
}

type Kind = 'serverError' | 'undocumented' | 'accepted' | 'written' | 'polluted' | 'goodRefused'

export const newTally = (): Tally => ({
  requests: 0,
  malformed: 0,
  statuses: {},
  failures: { serverError: [], undocumented: [], accepted: [], written: [], polluted: [], goodRefused: [] },
})

const document = JSON.parse(readFileSync(new URL('../../../packages/contract/openapi.json', import.meta.url), 'utf8'))

const operations: readonly Operation[] = operationsOf(document).map(
  ({ method, template, parameters = [], requestBody }) => ({
    name: `${method} ${template}`,
    method,
    template,
    parameters: parameters.filter(({ in: where }) => where !== undefined),
    body: requestBody?.content['application/json']?.schema,
  }),
)

const judge: Judge = judgeOf(document)

/** What was seen of one request. */
interface Seen {
  received: TestResponse
  written: number
  isMalformed: boolean
}

async function sendWire(row: Row, operation: Operation, sender: Sender, wire: Wire): Promise<Seen> {
  const headers = { ...(await sender.sign(wire)), ...wire.headers }
  const target = wire.query === '' ? wire.path : `${wire.path}?${wire.query}`
  const before = writes()
  const received = await send(row.handler, { method: operation.method, target, ...wire, headers })
  return { received, written: writes() - before, isMalformed: judge.isMalformed(operation, wire) }
}

/** Codes of requests that are refused for their form, before anything is done. */
const ofForm = new Set([
  'invalid_json',
  'unsupported_media_type',
  'validation_failed',
  'invalid_path',
  'payload_too_large',
])

/** What must not be, of one answer. */
function failuresOf(operation: Operation, wire: Wire, { received, written, isMalformed }: Seen): [Kind, string][] {
  const { status, json } = received
  const undocumented = judge.faultsOf(operation, wire, received).map((fault): [Kind, string] => ['undocumented', fault])
  return [
    ...(status >= 500 ? [['serverError', `${status} ${received.text}`] as [Kind, string]] : []),
    ...undocumented,
    ...(isMalformed && status < 300 ? [['accepted', `${status} ${received.text}`] as [Kind, string]] : []),
    ...(written > 0 && ofForm.has(json?.error) ? [['written', `${written} writes`] as [Kind, string]] : []),
    ...(isPolluted() ? [['polluted', 'a prototype has changed'] as [Kind, string]] : []),
  ]
}

/** Of requests that are as the document says only a few are kept: each of them does something. */
const keptShare = 0.05
/** A password costs 30 ms of a core. */
const keptShareWithPassword = 0.01

/** Where there is no parameter and no body a request is odd, whatever is changed about it, and malformed by its path alone. */
const isFormless = ({ parameters, body }: Operation): boolean => parameters.length === 0 && body === undefined

function nextWire(operation: Operation, good: Good, random: Random): Wire {
  const share = JSON.stringify(good.body ?? '').includes('assword') ? keptShareWithPassword : keptShare
  for (;;) {
    const wire = withoutWaiting(changedRequest(document, operation, good, random))
    if (isFormless(operation) || judge.isMalformed(operation, wire) || random.isLucky(share)) return wire
  }
}

/** A request that waits for output would wait for all of its seconds. */
const withoutWaiting = (wire: Wire): Wire => ({
  ...wire,
  query: wire.query.replace(/waitSeconds=\d+/, 'waitSeconds=0'),
})

/** How often somebody else makes the requests, about other things: some of them are gone by then. */
const perSender = 250

const spelled = ({ name }: Operation, wire: Wire): string =>
  `${name} ${JSON.stringify({ ...wire, ...(wire.body !== undefined && { body: Buffer.from(wire.body).toString().slice(0, 600) }) })}`

/** Sends so many malformed requests to one operation, odd ones where it has nothing that could be malformed. Answers how many it has sent. */
export async function fuzz(name: string, count: number, seed: number, tally: Tally): Promise<number> {
  const operation = operations.find((each) => each.name === name)
  const row = rows.find((each) => each.name === name)
  if (operation === undefined || row === undefined) throw new Error(`There is no operation ${name}.`)
  const random = randomOf(seedFor(seed, name))
  let bad = 0
  while (bad < count) {
    const sender = await senderOf(row)
    if (bad === 0) await sendGood(row, operation, sender, tally)
    for (let sent = 0; sent < perSender && bad < count; sent++) {
      const { isMalformed } = await sendChanged(row, operation, sender, nextWire(operation, sender.good, random), tally)
      if (isMalformed || isFormless(operation)) bad++
    }
  }
  return bad
}

/** The request that nobody has changed succeeds: else the others would be refused for another reason than theirs. */
async function sendGood(row: Row, operation: Operation, sender: Sender, { failures }: Tally): Promise<void> {
  const { received } = await sendWire(row, operation, sender, wireOf(operation, sender.good))
  const isDone = received.status < 400 || withoutSuccess.has(row.name)
  if (!isDone) failures.goodRefused.push(`${row.name}: ${received.status} ${received.text}`)
}

async function sendChanged(row: Row, operation: Operation, sender: Sender, wire: Wire, tally: Tally): Promise<Seen> {
  const seen = await sendWire(row, operation, sender, wire)
  const { status } = seen.received
  tally.requests++
  tally.statuses[status] = (tally.statuses[status] ?? 0) + 1
  if (seen.isMalformed) tally.malformed++
  for (const [kind, what] of failuresOf(operation, wire, seen)) {
    const known = tally.failures[kind]
    // A fault that comes again and again is told three times.
    const isNew = known.filter((line) => line.startsWith(`${operation.name} `)).length < 3
    const smallest = isNew ? await shrunk(wire, (smaller) => hasFailure(row, operation, sender, smaller, kind)) : wire
    known.push(isNew ? `${spelled(operation, smallest)}: ${what.slice(0, 600)}` : '')
  }
  return seen
}

async function hasFailure(row: Row, operation: Operation, sender: Sender, wire: Wire, kind: Kind): Promise<boolean> {
  const seen = await sendWire(row, operation, sender, wire)
  return failuresOf(operation, wire, seen).some(([each]) => each === kind)
}
