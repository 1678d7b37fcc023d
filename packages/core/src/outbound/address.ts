import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** What is handed out of IPv6 for the public network; all the rest is special or not in use (RFC 4291). */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether an address belongs to the public network: not loopback, private, link-local, shared (CGNAT), multicast,
 * documentation, benchmark …, and not one that leads into IPv4 by a translator or a tunnel (mapped, NAT64, 6to4, Teredo).
 */
export function isPublicAddress(address: string): boolean {
  // A zone names an interface of this machine: nothing public has one.
  if (isIP(address) === 0 || address.includes('%')) return false
  const parsed = ipaddr.parse(address)
  if (parsed.range() !== 'unicast') return false
  return parsed instanceof ipaddr.IPv4 || parsed.match(globalUnicast)
}
