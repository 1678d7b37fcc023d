import ipaddr from 'ipaddr.js'

/** Returns the /24 network of an IPv4 address or the /56 network of an IPv6 address, as a key for rate limits. */
export function signInNetworkOf(address: string): string {
  const [plainAddress = ''] = address.split('%')
  if (!ipaddr.isValid(plainAddress)) return address
  const parsed = ipaddr.process(plainAddress)
  const prefix = parsed.kind() === 'ipv4' ? 24 : 56
  const bytes = parsed.toByteArray().map((byte, index) => (index < prefix / 8 ? byte : 0))
  return `${ipaddr.fromByteArray(bytes).toString()}/${prefix}`
}

/**
 * Returns the address as a key for rate limits. IPv6 addresses are reduced to their first 64 bits, because a client
 * usually controls that range.
 */
export function ipNetworkOf(address: string): string {
  const [plainAddress = ''] = address.split('%')
  if (!ipaddr.IPv6.isValid(plainAddress)) return address
  const parsed = ipaddr.IPv6.parse(plainAddress)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${plainAddress}/64`).toString()}/64`
}
