import { RegistryError } from './error.ts'

/** Where a registry's API is to be found, and what else it may lead to. */

/** Docker's registry has one name in references and another on the network. */
const apiHosts: Readonly<Record<string, string>> = {
  'docker.io': 'registry-1.docker.io',
  'index.docker.io': 'registry-1.docker.io',
}

const isLoopback = ({ hostname }: URL): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname)

/** The address of a registry's API: https, and plain http on this machine only. Throws `RegistryFailure`. */
export function originOf(registry: string): URL {
  const host = apiHosts[registry] ?? registry
  const isHost = /^[a-z0-9.[\]:-]{1,260}$/i.test(host) && URL.canParse(`https://${host}`)
  if (!isHost) throw new RegistryError('invalid', 'The name of a registry is a host, and a port if it needs one.')
  const plain = new URL(`http://${host}`)
  return isLoopback(plain) ? plain : new URL(`https://${host}`)
}

/** Whether what is read or sent there can be overheard by nobody: https, or both ends on this machine. */
export const isConfidential = (url: URL, origin: URL): boolean =>
  url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url) && isLoopback(origin))

/** An address that an answer names, relative to the one that was asked; undefined where it is none. */
export const linkTo = (address: string | undefined, from: URL): URL | undefined =>
  address !== undefined && address !== '' && URL.canParse(address, from.href) ? new URL(address, from) : undefined
