import { RegistryError } from './error.ts'

/** Docker Hub has one host name in references and another on the network. */
const apiHosts: Readonly<Record<string, string>> = {
  'docker.io': 'registry-1.docker.io',
  'index.docker.io': 'registry-1.docker.io',
}

const isLoopback = ({ hostname }: URL): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname)

/** Returns the origin of a registry's API: HTTPS, or HTTP on loopback. Throws `RegistryError` for an invalid name. */
export function originOf(registry: string): URL {
  const host = apiHosts[registry] ?? registry
  const isHost = /^[a-z0-9.[\]:-]{1,260}$/i.test(host) && URL.canParse(`https://${host}`)
  if (!isHost) throw new RegistryError('invalid', 'A registry name is a host with an optional port.')
  const httpUrl = new URL(`http://${host}`)
  return isLoopback(httpUrl) ? httpUrl : new URL(`https://${host}`)
}

/**
 * Whether requests to a URL are safe from interception: HTTPS, or plain HTTP if both the URL and the registry are on
 * loopback.
 */
export const isConfidential = (url: URL, origin: URL): boolean =>
  url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url) && isLoopback(origin))

/** Resolves a URL in a response relative to the request URL; undefined if it is missing or invalid. */
export const resolveLink = (address: string | undefined, from: URL): URL | undefined =>
  address !== undefined && address !== '' && URL.canParse(address, from.href) ? new URL(address, from) : undefined
