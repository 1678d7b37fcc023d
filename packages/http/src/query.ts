import type { EndpointDefinition } from '@platform/contract/endpoint'
import { validationFailed } from '@platform/core/error'
import { jsonPointer } from '@platform/core/lib/validate'
import { readForm } from './body.ts'
import type { GatewayEvent } from './event.ts'

/**
 * Query parameters by name, and with them those of a form where the endpoint takes one. One that is given twice is refused:
 * readers would differ on which of them counts.
 */
export function readQuery({ request }: EndpointDefinition, event: GatewayEvent): Record<string, string> {
  const form = request?.queryInForm ? readForm(event) : ''
  const pairs = [...new URLSearchParams(event.rawQueryString), ...new URLSearchParams(form)]
  const repeated = [...Map.groupBy(pairs, ([name]) => name)].filter(([, given]) => given.length > 1)
  if (repeated.length === 0) return Object.fromEntries(pairs)
  throw validationFailed(
    repeated.map(([name]) => ({
      in: 'query',
      path: jsonPointer([name]),
      code: 'repeated',
      message: 'must be given once',
    })),
  )
}
