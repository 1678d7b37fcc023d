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
 * Guards calls to URLs from API callers, which must not reach private networks. Resolved addresses are checked when
 * connecting, which prevents DNS rebinding. Redirects are returned and not followed.
 */

interface OutboundRequest {
  method: string
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
  /** Limits the whole exchange, from name resolution to the last byte. */
  timeoutMs: number
  maxBytes: number
}

/** A response with any status, including errors. If the body exceeds `maxBytes`, it is cut and `isCutShort` is true. */
export interface OutboundResponse {
  status: number
  headers: http.IncomingHttpHeaders
  body: Buffer
  isCutShort: boolean
}

export type OutboundErrorKind =
  | 'url_not_allowed'
  | 'address_not_allowed'
  | 'name_not_resolved'
  | 'certificate_not_trusted'
  | 'connection_failed'
  | 'timed_out'

/** Thrown if there is no response. The message is for logs; callers receive only the kind. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError'
  readonly problem: OutboundErrorKind

  constructor(problem: OutboundErrorKind, options?: ErrorOptions) {
    super(problem, options)
    this.problem = problem
  }
}

/** For tests, and for webhooks and registries with their own allowlists. */
export interface OutboundOverrides {
  allow?: ReadonlySet<string>
  resolve?: (name: string) => Promise<readonly string[]>
}

const defaultAllowlist = parseAllowlist(config.PLAT_OUTBOUND_ALLOW)

export const isAllowlisted = (url: URL): boolean => defaultAllowlist.has(hostPortOf(url))

/**
 * Requires http or https, no credentials, and no private address unless the allowlist contains the address and port.
 * Throws `OutboundError`.
 */
export function checkUrl(address: string, { allow = defaultAllowlist }: OutboundOverrides = {}): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined
  const isValid = url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  if (!isValid) throw new OutboundError('url_not_allowed')
  const host = hostOf(url)
  const isPrivate = isIP(host) !== 0 && !isPublicAddress(host)
  if (isPrivate && !allow.has(hostPortOf(url))) throw new OutboundError('address_not_allowed')
  return url
}

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

export async function outboundFetch(
  address: string,
  request: OutboundRequest,
  { allow = defaultAllowlist, resolve = resolveName }: OutboundOverrides = {},
): Promise<OutboundResponse> {
  const url = checkUrl(address, { allow })
  return exchange(url, request, lookupOf(url, { allow, resolve })).catch((error: unknown) => {
    recordMetric('OutboundFailures')
    throw error
  })
}

/** For protocols other than HTTP. Aborting the signal closes the connection. Throws `OutboundError`. */
export async function outboundConnect(
  { href }: URL,
  signal: AbortSignal,
  { allow = defaultAllowlist, resolve = resolveName }: OutboundOverrides = {},
): Promise<Socket> {
  const url = checkUrl(href, { allow })
  const endpoint = { host: hostOf(url), port: Number(hostPortOf(url).split(':').at(-1)) }
  return new Promise((connected, reject) => {
    const lookup = lookupOf(url, { allow, resolve })
    const socket = addAbortSignal(signal, connect({ ...endpoint, lookup, autoSelectFamily: true, noDelay: true }))
    socket.once('connect', () => connected(socket))
    socket.on('error', (error) => {
      const isTimedOut = signal.aborted
      if (!isTimedOut) recordMetric('OutboundFailures')
      reject(isTimedOut ? new OutboundError('timed_out', { cause: error }) : toOutboundError(error))
    })
  })
}

/** The system resolver looks up allowed targets, because their names may be in the hosts file. */
const lookupOf = (url: URL, { allow, resolve }: Required<OutboundOverrides>): LookupFunction =>
  allow.has(hostPortOf(url))
    ? lookupBy(async (name) => (await lookUpHere(name, { all: true })).map(({ address }) => address))
    : lookupBy(async (name) => requirePublic(await resolve(name)))

/** Queries name servers directly, because each system lookup blocks one of few threads. */
async function resolveName(name: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  const results = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
}

/** A name with any private address is rejected. */
function requirePublic(addresses: readonly string[]): readonly string[] {
  if (!addresses.every(isPublicAddress)) throw new OutboundError('address_not_allowed')
  return addresses
}

/** The connection uses exactly the addresses that this lookup returns. */
const lookupBy = (resolve: (name: string) => Promise<readonly string[]>): LookupFunction => {
  const lookUp = callbackify(async (name: string): Promise<LookupAddress[]> => {
    const addresses = await resolve(name).catch((error: unknown) => {
      throw toOutboundError(error, 'name_not_resolved')
    })
    if (addresses.length === 0) throw new OutboundError('name_not_resolved')
    return addresses.map((address) => ({ address, family: isIP(address) }))
  })
  return (name, _options, callback) => lookUp(name, callback)
}

/** Opens a new connection for each request, because a pooled one would bypass the address check. */
function exchange(url: URL, request: OutboundRequest, lookup: LookupFunction): Promise<OutboundResponse> {
  const { method, body = '', timeoutMs, maxBytes } = request
  const headers = { 'user-agent': `Platform/${version}`, ...request.headers }
  const open = url.protocol === 'https:' ? https.request : http.request
  return new Promise((resolve, reject) => {
    // The lookup returns lists, as `autoSelectFamily` requires.
    const options = { lookup, autoSelectFamily: true, agent: false, rejectUnauthorized: true } as const
    const outgoing = open(url, { method, headers, ...options })
    const fail = (error: OutboundError) => {
      reject(error)
      outgoing.destroy()
    }
    const timer = setTimeout(() => fail(new OutboundError('timed_out')), timeoutMs)
    let hasResponse = false
    outgoing.on('response', (incoming) => {
      hasResponse = true
      read(incoming, maxBytes).then(resolve, (error: unknown) => fail(toOutboundError(error)))
    })
    outgoing.on('error', (error) => fail(toOutboundError(error)))
    // After an invalid response, such as a protocol upgrade, the connection closes without an error.
    outgoing.on('close', () => {
      clearTimeout(timer)
      if (!hasResponse) fail(new OutboundError('connection_failed'))
    })
    outgoing.end(body)
  })
}

async function read(incoming: http.IncomingMessage, maxBytes: number): Promise<OutboundResponse> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > maxBytes) break
  }
  const { statusCode: status = 0, headers } = incoming
  return { status, headers, body: Buffer.concat(chunks).subarray(0, maxBytes), isCutShort: bytes > maxBytes }
}

const certificateErrorPattern = /CERT|SIGNATURE|ISSUER|ERR_TLS/

export function toOutboundError(error: unknown, fallback: OutboundErrorKind = 'connection_failed'): OutboundError {
  if (error instanceof OutboundError) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return new OutboundError(certificateErrorPattern.test(code) ? 'certificate_not_trusted' : fallback, { cause: error })
}

/** The global unicast range of IPv6; all other addresses are special or unassigned (RFC 4291). */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Rejects loopback, private, link-local, shared (CGNAT), multicast, documentation and benchmark addresses, and IPv6
 * forms of IPv4 addresses (mapped, NAT64, 6to4, Teredo).
 */
export function isPublicAddress(address: string): boolean {
  // A zone identifies a local interface.
  if (isIP(address) === 0 || address.includes('%')) return false
  const parsed = ipaddr.parse(address)
  if (parsed.range() !== 'unicast') return false
  return parsed instanceof ipaddr.IPv4 || parsed.match(globalUnicast)
}
