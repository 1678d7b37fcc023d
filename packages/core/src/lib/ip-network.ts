import ipaddr from 'ipaddr.js'

/**
 * The key of an address for rate limits: an IPv4 address, also if mapped to IPv6, or the first 64 bits of IPv6.
 */
export function ipNetworkOf(address: string): string {
  const [plain = ''] = address.split('%')
  if (!ipaddr.IPv6.isValid(plain)) return address
  const parsed = ipaddr.IPv6.parse(plain)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${plain}/64`).toString()}/64`
}
