import { invalid } from '@platform/core/fault'
import { pointer } from '@platform/core/valid'
import type { GatewayEvent } from './event.ts'

/** Query parameters by name. One that is given twice is refused: readers would differ on which of them counts. */
export function readQuery({ rawQueryString }: GatewayEvent): Record<string, string> {
  const pairs = [...new URLSearchParams(rawQueryString)]
  const repeated = [...Map.groupBy(pairs, ([name]) => name)].filter(([, given]) => given.length > 1)
  if (repeated.length === 0) return Object.fromEntries(pairs)
  throw invalid(
    repeated.map(([name]) => ({ in: 'query', path: pointer([name]), code: 'repeated', message: 'must be given once' })),
  )
}
