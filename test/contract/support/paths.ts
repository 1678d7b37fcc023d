import type { EndpointDefinition } from '@platform/contract/endpoint'

type Operation = Pick<EndpointDefinition, 'method' | 'path'>

export const parametersOf = (path: string): string[] => [...path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => name)

export const operationKey = ({ method, path }: Operation): string => `${method} ${path.replaceAll(/\{[^}]+\}/g, '{}')}`

const segments = (path: string): string[] => path.split('/')

function takes(general: Operation, special: Operation): boolean {
  if (general.method !== special.method || general.path === special.path) return false
  const specialSegments = segments(special.path)
  const generalSegments = segments(general.path)
  return (
    generalSegments.length === specialSegments.length &&
    generalSegments.every((segment, index) => segment.startsWith('{') || segment === specialSegments[index])
  )
}

/** Returns the operations that an earlier operation hides from a router without priorities. */
export const findHidden = (endpoints: readonly Operation[]): string[] =>
  endpoints
    .filter((special, index) => endpoints.slice(0, index).some((general) => takes(general, special)))
    .map(operationKey)
