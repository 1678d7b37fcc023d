import ipaddr from 'ipaddr.js'

/**
 * What limits count an address under: an IPv4 address by itself, mapped into IPv6 or not, of IPv6 the first 64 bits. Who
 * has one IPv6 address has all of them that begin so.
 */
export function ipNetworkOf(address: string): string {
  const [plain = ''] = address.split('%')
  if (!ipaddr.IPv6.isValid(plain)) return address
  const parsed = ipaddr.IPv6.parse(plain)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${plain}/64`).toString()}/64`
}
