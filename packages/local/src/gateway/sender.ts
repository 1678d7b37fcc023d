import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { parseList } from '@platform/core/lib/settings/list'
import * as z from 'zod'

/** The client of a request. A trusted proxy may describe it in `X-Forwarded-*` headers. */
export interface Sender {
  address: string
  protocol: 'http' | 'https'
  /** Replaces the `Host` header; undefined if the header applies. */
  host?: string
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** Addresses and CIDR blocks, separated by commas. */
export const TrustedProxies = z.string().transform((text, context) => {
  const proxies = new BlockList()
  for (const item of parseList(text)) if (!addProxy(proxies, item)) context.addIssue(invalidProxyMessage(item))
  return proxies
})

const invalidProxyMessage = (item: string): string =>
  `${JSON.stringify(item)} must be an address or a CIDR block of proxies, such as 127.0.0.1 or 10.1.0.0/16`

/** A block of all addresses is rejected, because every client could then choose its own address. */
function addProxy(proxies: BlockList, item: string): boolean {
  const [, address = '', prefix] = /^([^/%]+)(?:\/([1-9]\d{0,2}))?$/.exec(item) ?? []
  const maxPrefixLength = isIP(address) === 6 ? 128 : 32
  if (isIP(address) === 0 || Number(prefix ?? maxPrefixLength) > maxPrefixLength) return false
  proxies.addSubnet(address, Number(prefix ?? maxPrefixLength), familyOf(address))
  return true
}

const noProxies = new BlockList()

/**
 * Reads `X-Forwarded-For` from the right, because a client can send its own entries on the left: the sender is the
 * first address that is not a trusted proxy. Of the other headers, the last value is the one that the proxy has set.
 */
export function senderOf({ socket, headersDistinct }: IncomingMessage, proxies = noProxies): Sender {
  const peer = plainAddress(socket.remoteAddress ?? '')
  const isTrusted = (address: string) => isIP(address) !== 0 && proxies.check(address, familyOf(address))
  if (!isTrusted(peer)) return { address: peer, protocol: 'http' }
  const valuesOf = (name: string) => (headersDistinct[name] ?? []).flatMap((value) => value.split(',')).map(trim)
  const host = valuesOf('x-forwarded-host').at(-1) ?? ''
  return {
    address: findSender([...valuesOf('x-forwarded-for').map(addressIn), peer], isTrusted),
    protocol: valuesOf('x-forwarded-proto').at(-1)?.toLowerCase() === 'https' ? 'https' : 'http',
    ...(/^[\w.:[\]-]+$/.test(host) && { host }),
  }
}

const trim = (text: string): string => text.trim()

/** An entry that is not an address ends the search at the proxy that added it. */
function findSender(route: readonly string[], isTrusted: (address: string) => boolean): string {
  const lastUntrusted = route.findLastIndex((address) => !isTrusted(address))
  const sender = route[Math.max(lastUntrusted, 0)] ?? ''
  return isIP(sender) === 0 ? (route[lastUntrusted + 1] ?? '') : sender
}

/** Some proxies add the port: `192.0.2.1:5000`, `[2001:db8::1]:5000`. */
function addressIn(entry: string): string {
  const [, bracketed, beforePort] = /^(?:\[(.*)\](?::\d+)?|([^:]*):\d+)$/.exec(entry) ?? []
  return plainAddress(bracketed ?? beforePort ?? entry)
}

/** Converts IPv4-mapped IPv6 addresses to IPv4. */
const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')
