import ipaddr from 'ipaddr.js'

/**
 * Returns the address as a key for rate limits. IPv6 addresses are reduced to their first 64 bits, because a client
 * usually controls that range.
 */
export function ipNetworkOf(address: string): string {
  const [plain = ''] = address.split('%')
  if (!ipaddr.IPv6.isValid(plain)) return address
  const parsed = ipaddr.IPv6.parse(plain)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${plain}/64`).toString()}/64`
}
