import type { LookupAddress } from 'node:dns'
import { lookup as lookUpHere, Resolver } from 'node:dns/promises'
import * as http from 'node:http'
import * as https from 'node:https'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { addAbortSignal } from 'node:stream'
import { callbackify } from 'node:util'
import ipaddr from 'ipaddr.js'
import { config } from '../config.ts'
import { recordMetric } from '../lib/metrics.ts'
import { parseAllowlist, hostPortOf } from '../lib/settings/allowlist.ts'
import { version } from '../lib/version.ts'

/**
 * The only code that makes outbound calls. Addresses named by API callers must not reach private networks, so every
 * address is checked when connecting: DNS rebinding gains nothing. Redirects are returned; each call is checked.
 */

/** A request and the limits of its response. */
interface OutboundRequest {
  method: string
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
  /** For the whole exchange, from name resolution to the last byte. */
  timeoutMs: number
  /** Limit of the response body; the connection is closed beyond it. */
  maxBytes: number
}

/** A response with any status. `isCutShort`: the body exceeded the limit. */
export interface OutboundResponse {
  status: number
  headers: http.IncomingHttpHeaders
  body: Buffer
  isCutShort: boolean
}

/** The reason for a missing response. */
export type OutboundErrorKind =
  | 'url_not_allowed'
  | 'address_not_allowed'
  | 'name_not_resolved'
  | 'certificate_not_trusted'
  | 'connection_failed'
  | 'timed_out'

/** A call without a response. The message is for logs; callers only receive the kind. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError'
  readonly problem: OutboundErrorKind

  constructor(problem: OutboundErrorKind, options?: ErrorOptions) {
    super(problem, options)
    this.problem = problem
  }
}

/** Overrides for tests: allowed private targets and name resolution. */
export interface OutboundOverrides {
  allow?: ReadonlySet<string>
  resolve?: (name: string) => Promise<readonly string[]>
}

const allowed = parseAllowlist(config.PLAT_OUTBOUND_ALLOW)

/** Whether the operator allows this private target. */
export const isAllowlisted = (url: URL): boolean => allowed.has(hostPortOf(url))

/**
 * Checks a URL before any connection: http or https, no credentials, no private address unless `PLAT_OUTBOUND_ALLOW`
 * names it. Throws `OutboundError`. No call: resolved addresses are checked when connecting.
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

/** The host for a connection: IPv6 addresses without brackets. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

/** Calls an address. Throws `OutboundError` without a response within the limits. */
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

/** Opens a connection to a URL's host and port for other protocols; the signal closes it. Throws `OutboundError`. */
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

/** Allowed targets may be in the machine's hosts file. */
const lookupOf = (url: URL, { allow, resolve }: Required<OutboundOverrides>): LookupFunction =>
  allow.has(hostPortOf(url))
    ? lookupBy(async (name) => (await lookUpHere(name, { all: true })).map((found) => found.address))
    : lookupBy(async (name) => onlyPublic(await resolve(name)))

/** Queries name servers directly: system lookups block one of few threads. */
async function resolveName(name: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
}

/** A name with any private address is rejected. */
function onlyPublic(addresses: readonly string[]): readonly string[] {
  if (!addresses.every(isPublicAddress)) throw new OutboundError('address_not_allowed')
  return addresses
}

/** The connection uses exactly the addresses that this lookup returns. */
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

/** One request on its own connection: a pooled one could bypass the check. */
function exchange(url: URL, request: OutboundRequest, lookup: LookupFunction): Promise<OutboundResponse> {
  const { method, body = '', timeoutMs, maxBytes } = request
  const headers = { 'user-agent': `Platform/${version}`, ...request.headers }
  const open = url.protocol === 'https:' ? https.request : http.request
  return new Promise((resolve, reject) => {
    // The lookup returns lists, as `autoSelectFamily` requires.
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
    // An invalid response, such as a protocol upgrade, closes without an error.
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

/** Converts any connection error. */
export function toOutboundError(error: unknown, otherwise: OutboundErrorKind = 'connection_failed'): OutboundError {
  if (error instanceof OutboundError) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return new OutboundError(certificateErrors.test(code) ? 'certificate_not_trusted' : otherwise, { cause: error })
}

/** The global unicast range of IPv6; all other addresses are special or unassigned (RFC 4291). */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether an address is public: not loopback, private, link-local, shared (CGNAT), multicast, documentation or
 * benchmark, and not an IPv6 form of IPv4 (mapped, NAT64, 6to4, Teredo).
 */
export function isPublicAddress(address: string): boolean {
  // A zone names a local interface.
  if (isIP(address) === 0 || address.includes('%')) return false
  const parsed = ipaddr.parse(address)
  if (parsed.range() !== 'unicast') return false
  return parsed instanceof ipaddr.IPv4 || parsed.match(globalUnicast)
}
