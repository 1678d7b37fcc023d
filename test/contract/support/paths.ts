import type { EndpointDefinition } from '@platform/contract/endpoint'

type Address = Pick<EndpointDefinition, 'method' | 'path'>

/** The names of the parameters of a path, in order. */
export const parametersOf = (path: string): string[] => [...path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => name)

/** Method and path, with every parameter alike: what a router tells apart. */
export const addressOf = ({ method, path }: Address): string => `${method} ${path.replaceAll(/\{[^}]+\}/g, '{}')}`

const segments = (path: string): string[] => path.split('/')

/** Whether a path with parameters would also take the requests that are meant for the other path. */
function takes(general: Address, special: Address): boolean {
  if (general.method !== special.method || general.path === special.path) return false
  const wanted = segments(special.path)
  const offered = segments(general.path)
  return (
    offered.length === wanted.length &&
    offered.every((segment, index) => segment.startsWith('{') || segment === wanted[index])
  )
}

/** Operations that one before them hides from a router that tries them in order. */
export const hidden = (endpoints: readonly Address[]): string[] =>
  endpoints
    .filter((special, index) => endpoints.slice(0, index).some((general) => takes(general, special)))
    .map(addressOf)
