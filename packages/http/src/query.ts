import { invalid } from '@platform/core/fault'
import { pointer } from '@platform/core/valid'
import type { GatewayEvent } from './event.ts'

/** Query parameters by name. One that is given twice is refused: readers would differ on which of them counts. */
export function readQuery({ rawQueryString }: GatewayEvent): Record<string, string> {
  const pairs = [...new URLSearchParams(rawQueryString)]
  const query = Object.fromEntries(pairs)
  const names = Object.keys(query)
  if (names.length === pairs.length) return query
  const repeated = names.filter((name) => pairs.filter((pair) => pair[0] === name).length > 1)
  throw invalid(
    repeated.map((name) => ({ in: 'query', path: pointer([name]), code: 'repeated', message: 'must be given once' })),
  )
}
