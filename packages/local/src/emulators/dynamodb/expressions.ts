import { mapPaths, matchesExprFilter, matchesFilter } from './dynalite.ts'
import type { Data } from './dynalite.ts'
import type { Item } from './types.ts'

type Parsed = Pick<Data, 'AttributesToGet' | '_projection'>

export function passesFilter(item: Item, data: Data): boolean {
  const { _filter: filter } = data
  if (filter) return matchesExprFilter(item, filter.expression)
  const legacyFilter = data.QueryFilter ?? data.ScanFilter
  return legacyFilter === undefined || matchesFilter(item, legacyFilter, data.ConditionalOperator)
}

export function projectItem(item: Item, { _projection: projection, AttributesToGet }: Parsed): Item {
  const paths = projection?.paths ?? AttributesToGet
  return paths ? mapPaths(paths, item) : item
}
