import ipaddr from 'ipaddr.js'

/**
 * The address as a key for rate limits. IPv6 addresses are cut to 64 bits, because one client controls at least that
 * range.
 */
export function ipNetworkOf(address: string): string {
  const [plain = ''] = address.split('%')
  if (!ipaddr.IPv6.isValid(plain)) return address
  const parsed = ipaddr.IPv6.parse(plain)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${plain}/64`).toString()}/64`
}
