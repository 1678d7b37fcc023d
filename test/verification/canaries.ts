import { setTimeout as delay } from 'node:timers/promises'
import { expectStatus } from '../conformance/support/answer.ts'
import { connect, type Platform } from '../conformance/support/platform.ts'
import { freePorts } from '../support/free-ports.ts'
import { PlatformProcess } from '../support/platform.ts'
import { slipsOf } from './canaries/misplaced.ts'
import { Needles, type Secret } from './canaries/needles.ts'
import { Places } from './canaries/places.ts'
import { plantKept, plantProviders, plantRelay } from './canaries/planted.ts'
import { randomSecret } from './canaries/random-secret.ts'
import { type Exchange, type Recorder, startRecorder } from './canaries/recorder.ts'
import { isShownBy, secretsOf } from './canaries/secrets.ts'
import { sendSlip } from './canaries/sender.ts'
import { runJourneys } from './journeys.ts'
import { all, atLeast, type Effort, type Figure, none, type Part } from './part.ts'
import { storeFaultsOf } from './support/emulators.ts'

/** Areas that give and take secrets, for a run of some seconds. */
const few = ['browser-sessions', 'api-tokens', 'idempotency']

/** What the platform asks of its store; who looks at all of it asks otherwise. */
const ofPlatform = ['GetItem', 'BatchGetItem', 'Query', 'PutItem', 'UpdateItem', 'BatchWriteItem', 'TransactWriteItems']

/** Everything that is searched, and what for. */
interface Evidence {
  exchanges: readonly Exchange[]
  places: Places
  log: string
  relay: string
  metrics: string
  secrets: readonly Secret[]
  /** No secret: it has to be found in the table, the queues and the log. */
  known: string
}

async function prove(effort: Effort): Promise<Figure[]> {
  const receivers = (await freePorts(2)).map((port) => `127.0.0.1:${port}`).join()
  const settings = {
    PLAT_OUTBOUND_ALLOW: `${receivers},127.0.0.1:9`,
    PLAT_REGISTRY_ALLOW: '127.0.0.1:9',
    PLAT_LOG_LEVEL: 'debug',
    PLAT_METRICS: 'emf',
  }
  await using platform = await PlatformProcess.start(settings, { withFaults: true })
  await using recorder = await startRecorder(platform.url)
  const places = new Places(platform)
  const end = new AbortController()
  const looking = lookOn(places, end.signal, effort)
  const password = randomSecret('password')
  const initial = await platform.command('npm run -s admin-token')
  const environment = { PLAT_OUTBOUND_ALLOW: receivers, PLAT_CONFORMANCE_PASSWORD: password }
  const journeys = await runJourneys(platform, {
    baseUrl: recorder.url,
    environment,
    say: effort.say,
    ...(effort.isShort && { only: few }),
  })
  const planted = await fail(platform, recorder, password, effort)
  end.abort()
  await looking
  await places.look()
  const metrics = await (await fetch(`${platform.url}/metrics`)).text()
  const own = [{ kind: 'initial admin token', text: initial.trim() }, ...planted.secrets]
  const secrets = [...own, ...secretsOf(recorder.exchanges)]
  const evidence = {
    exchanges: recorder.exchanges,
    places,
    log: platform.text,
    relay: planted.relay,
    metrics,
    secrets,
    known: planted.known,
  }
  return [all('journeys that pass meanwhile', journeys.passed, journeys.total), ...figuresOf(evidence, effort)]
}

/** Looks again and again; what is there grows, and looking at it must leave most of the machine to what is looked at. */
async function lookOn(places: Places, end: AbortSignal, { say }: Effort): Promise<void> {
  while (!end.aborted) {
    const startedAtMs = performance.now()
    // The next look, and the one after all is done, see what this one could not.
    await places.look().catch((error: unknown) => say(`A look at the table and the queues failed: ${String(error)}`))
    await delay(Math.max(500, 4 * (performance.now() - startedAtMs)))
  }
}

/** Where a text stands, with what is around it. */
const around = (haystack: string, text: string): string => {
  const at = haystack.indexOf(text)
  return at < 0
    ? `${text}, in another spelling`
    : JSON.stringify(haystack.slice(Math.max(0, at - 150), at + text.length + 80))
}

/** All that may fail with a secret at hand: relays, providers and registries, slips, and a store that is away. */
async function fail(
  platform: PlatformProcess,
  { url, exchanges }: Recorder,
  password: string,
  { isShort, say }: Effort,
) {
  const api = await connect({ baseUrl: url, username: 'admin', password })
  const { secrets: keys, written: relay } = await plantRelay(api)
  const secrets = [...keys, ...(await plantProviders(api)), ...(await plantKept(platform, api))]
  const { accessToken } = await api.signIn()
  const { organisationId: known } = expectStatus(await (await api.admin).get('/api/v1/auth/me'), 200)
  const kinds = oneOfEachKind([...secrets, ...secretsOf(exchanges)])
  const one = isShort ? kinds.filter((_, index) => index % 4 === 0) : kinds
  say(`putting ${one.length} secrets where they do not belong`)
  await slip(url, one, accessToken)
  const faults = await storeFaultsOf(platform)
  await faults.set({ throttleRate: 1, operations: ofPlatform })
  await slip(url, one.slice(0, 3), accessToken)
  await good(api)
  await faults.clear()
  return { secrets, relay, known }
}

const oneOfEachKind = (secrets: readonly Secret[]): Secret[] => [
  ...new Map(secrets.map((secret) => [secret.kind, secret])).values(),
]

async function slip(url: string, secrets: readonly Secret[], accessToken: string): Promise<void> {
  for (const secret of secrets) await Promise.all(slipsOf(secret, accessToken).map((each) => sendSlip(url, each)))
}

/** Calls that are good, and fail because the store is away. */
async function good({ anonymous, options: { username, password } }: Platform): Promise<void> {
  await anonymous.attempt('POST', '/api/v1/auth/login', { json: { username, password } })
  await anonymous.attempt('POST', '/api/v1/auth/session', { json: { username, password } })
}

function figuresOf(evidence: Evidence, { say }: Effort): Figure[] {
  const { exchanges, places, log, relay, metrics, secrets } = evidence
  const needles = new Needles(secrets)
  const hits = (where: string, haystacks: Iterable<Buffer | string>): number => {
    let count = 0
    for (const haystack of haystacks) {
      for (const { kind, text } of needles.in(haystack)) {
        count++
        say(`${where}: ${kind} ${around(haystack.toString(), text)}`)
      }
    }
    return count
  }
  const answers = exchanges.flatMap((exchange) => {
    const { headers, body } = exchange.told
    const found = needles.in(Buffer.from(`${headers.join('\n')}\n${body}`, 'latin1'))
    return found.filter((secret) => !isShownBy(exchange, secret)).map((secret) => ({ exchange, secret }))
  })
  for (const { exchange, secret } of answers) {
    say(
      `${exchange.method} ${exchange.target} ${exchange.status}: ${secret.kind} ${around(exchange.told.body, secret.text)}`,
    )
  }
  const kinds = new Set(secrets.map(({ kind }) => kind))
  const findable = needles.in(secrets.map(({ text }) => text).join('\n')).length
  return [
    atLeast(`kinds of secrets (${secrets.length} secrets: ${[...kinds].toSorted().join(', ')})`, kinds.size, 12),
    all('of these, those that the search finds in a list of them', findable, secrets.length),
    all('places of three where it finds what has to be there', placesOfKnown(evidence), 3),
    none('secrets in answers, but those that show them once', answers.length, `${exchanges.length} answers`),
    none('secrets in the log, at its most talkative', hits('log', [log]), `${log.split('\n').length} lines`),
    none('secrets in what a relay writes', hits('relay', [relay]), `${relay.split('\n').length} lines`),
    none(
      'secrets in the table',
      hits('table', places.table.values()),
      `${places.table.size} states of items in ${places.looks} looks`,
    ),
    none('secrets in the files of the queues', hits('queues', places.queues.values()), `${places.queues.size} pages`),
    none('secrets in the metrics', hits('metrics', [metrics]), `${metrics.split('\n').length} lines`),
  ]
}

/** In how many of the places there is what they must hold: a search that sees nothing there would show nothing. */
function placesOfKnown({ places, log, known }: Evidence): number {
  const needle = new Needles([{ kind: 'known', text: known }])
  const searched: readonly Iterable<Buffer | string>[] = [places.table.values(), places.queues.values(), [log]]
  return searched.filter((haystacks) => [...haystacks].some((haystack) => needle.in(haystack).length > 0)).length
}

export const part: Part = {
  title: 'Secrets that must not be found again',
  how:
    'The journeys of the conformance suite run through a recorder, and every secret that is given or taken on the way is remembered; then ' +
    'each kind is put into every wrong place, and the store goes away. All of them are searched for, plain, in Base64, hexadecimal, URLs and ' +
    'JSON, in all answers, the log at level debug, all that the table and the queues hold from moment to moment, unpacked, and the metrics.',
  run: prove,
}
