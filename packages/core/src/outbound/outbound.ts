import { type LookupAddress } from 'node:dns'
import { lookup as lookUpHere, Resolver } from 'node:dns/promises'
import * as http from 'node:http'
import * as https from 'node:https'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { addAbortSignal } from 'node:stream'
import { callbackify } from 'node:util'
import { config } from '../config.ts'
import { recordMetric } from '../lib/metrics.ts'
import { isPublicAddress } from './address.ts'
import { parseAllowlist, hostPortOf } from '../lib/settings/allowlist.ts'
import { version } from '../lib/version.ts'

/**
 * The one way out (CONTRIBUTING.md, House rules). What callers of the API name must not lead the platform to its own
 * neighbours, so every address is checked at the moment of connecting: a name that answers differently the second time
 * gains nothing. Redirects are answers like any other; whoever follows one calls again, and is checked again.
 */

/** What is sent, and how much of an answer is waited for. */
export interface OutboundRequest {
  method: string
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
  /** For the whole exchange, from the name's resolution to the last byte. */
  timeoutMs: number
  /** The most that is read of the answer's body; the connection ends where there is more. */
  maxBytes: number
}

/** An answer of whatever status. `isCutShort`: its body holds more than was read. */
export interface OutboundResponse {
  status: number
  headers: http.IncomingHttpHeaders
  body: Buffer
  isCutShort: boolean
}

/** Why there is no answer, in one word. */
export type OutboundErrorKind =
  | 'url_not_allowed'
  | 'address_not_allowed'
  | 'name_not_resolved'
  | 'certificate_not_trusted'
  | 'connection_failed'
  | 'timed_out'

/** Why there is no answer. The message is for logs; who asked for the call is told the problem and nothing else. */
export class OutboundError extends Error {
  override readonly name = 'OutboundFailure'
  readonly problem: OutboundErrorKind

  constructor(problem: OutboundErrorKind, options?: ErrorOptions) {
    super(problem, options)
    this.problem = problem
  }
}

/** What tests set: private targets that may be reached, and how names become addresses. */
export interface OutboundOverrides {
  allow?: ReadonlySet<string>
  resolve?: (name: string) => Promise<readonly string[]>
}

const allowed = parseAllowlist(config.PLAT_OUTBOUND_ALLOW)

/** Whether the operator has named the target of an address as one that may be called although it is private. */
export const isAllowlisted = (url: URL): boolean => allowed.has(hostPortOf(url))

/**
 * The address as a URL that may be called, as far as its text tells: http or https, no credentials, no private address
 * unless `PLAT_OUTBOUND_ALLOW` names it. Throws `OutboundFailure`. No call: what a name leads to shows when it is called.
 */
export function checkUrl(address: string, { allow = allowed }: OutboundOverrides = {}): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined
  const isPlain = url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  if (!isPlain) throw new OutboundError('url_not_allowed')
  const host = hostOf(url)
  const isRefused = isIP(host) !== 0 && !isPublicAddress(host) && !allow.has(hostPortOf(url))
  if (isRefused) throw new OutboundError('address_not_allowed')
  return url
}

/** The host of an address as a connection takes it: an IPv6 address without brackets. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

/** Calls an address. Throws `OutboundFailure` where there is no answer within the request's limits. */
export async function outboundFetch(
  address: string,
  request: OutboundRequest,
  { allow = allowed, resolve = resolveName }: OutboundOverrides = {},
): Promise<OutboundResponse> {
  const url = checkUrl(address, { allow })
  return exchange(url, request, lookupOf(url, { allow, resolve })).catch((failure: unknown) => {
    recordMetric('OutboundFailures')
    throw failure
  })
}

/**
 * Opens a connection to the host and port of an address, for what is not HTTP; it ends with the signal. Throws
 * `OutboundFailure`.
 */
export async function outboundConnect(
  { href }: URL,
  signal: AbortSignal,
  { allow = allowed, resolve = resolveName }: OutboundOverrides = {},
): Promise<Socket> {
  const url = checkUrl(href, { allow })
  const place = { host: hostOf(url), port: Number(hostPortOf(url).split(':').at(-1)) }
  return new Promise((connected, reject) => {
    const lookup = lookupOf(url, { allow, resolve })
    const socket = addAbortSignal(signal, connect({ ...place, lookup, autoSelectFamily: true, noDelay: true }))
    socket.once('connect', () => connected(socket))
    socket.on('error', (error) => {
      const isLate = signal.aborted
      if (!isLate) recordMetric('OutboundFailures')
      reject(isLate ? new OutboundError('timed_out', { cause: error }) : toOutboundError(error))
    })
  })
}

/** What the operator named is what it is, and may stand in the machine's own hosts file. */
const lookupOf = (url: URL, { allow, resolve }: Required<OutboundOverrides>): LookupFunction =>
  allow.has(hostPortOf(url))
    ? lookupBy(async (name) => (await lookUpHere(name, { all: true })).map((found) => found.address))
    : lookupBy(async (name) => onlyPublic(await resolve(name)))

/** Asks name servers, not the machine: a lookup by the machine holds one of few threads for as long as it takes. */
async function resolveName(name: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
}

/** One private address among public ones is no accident: the name is refused as a whole. */
function onlyPublic(addresses: readonly string[]): readonly string[] {
  if (!addresses.every(isPublicAddress)) throw new OutboundError('address_not_allowed')
  return addresses
}

/** The lookup of a connection: it connects to what this answers, and asks nobody else. */
const lookupBy = (resolve: (name: string) => Promise<readonly string[]>): LookupFunction => {
  const answer = callbackify(async (name: string): Promise<LookupAddress[]> => {
    const addresses = await resolve(name).catch((error: unknown) => {
      throw toOutboundError(error, 'name_not_resolved')
    })
    if (addresses.length === 0) throw new OutboundError('name_not_resolved')
    return addresses.map((address) => ({ address, family: isIP(address) }))
  })
  return (name, _options, callback) => answer(name, callback)
}

/** One request on a connection of its own: a pooled one might have been opened for somebody else. */
function exchange(url: URL, request: OutboundRequest, lookup: LookupFunction): Promise<OutboundResponse> {
  const { method, body = '', timeoutMs, maxBytes } = request
  const headers = { 'user-agent': `Platform/${version}`, ...request.headers }
  const open = url.protocol === 'https:' ? https.request : http.request
  return new Promise((resolve, reject) => {
    // The lookup answers lists, which a connection asks for where it may choose the family.
    const choice = { lookup, autoSelectFamily: true, agent: false, rejectUnauthorized: true } as const
    const outgoing = open(url, { method, headers, ...choice })
    const fail = (failure: OutboundError) => {
      reject(failure)
      outgoing.destroy()
    }
    const timer = setTimeout(() => fail(new OutboundError('timed_out')), timeoutMs)
    let isAnswered = false
    outgoing.on('response', (incoming) => {
      isAnswered = true
      read(incoming, maxBytes).then(resolve, (error: unknown) => fail(toOutboundError(error)))
    })
    outgoing.on('error', (error) => fail(toOutboundError(error)))
    // An answer that is none, such as a change of protocol, ends without an error.
    outgoing.on('close', () => {
      clearTimeout(timer)
      if (!isAnswered) fail(new OutboundError('connection_failed'))
    })
    outgoing.end(body)
  })
}

async function read(incoming: http.IncomingMessage, maxBytes: number): Promise<OutboundResponse> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of incoming as AsyncIterable<Buffer>) {
    parts.push(part)
    bytes += part.length
    if (bytes > maxBytes) break
  }
  const { statusCode: status = 0, headers } = incoming
  return { status, headers, body: Buffer.concat(parts).subarray(0, maxBytes), isCutShort: bytes > maxBytes }
}

const certificateErrors = /CERT|SIGNATURE|ISSUER|ERR_TLS/

/** Any error of a connection as why there is no answer. */
export function toOutboundError(error: unknown, otherwise: OutboundErrorKind = 'connection_failed'): OutboundError {
  if (error instanceof OutboundError) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return new OutboundError(certificateErrors.test(code) ? 'certificate_not_trusted' : otherwise, { cause: error })
}
