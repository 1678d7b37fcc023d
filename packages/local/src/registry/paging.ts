import { RegistryServerError } from './error.ts'

const maxPageSize = 1000

/** `linkHeaders` contains the `Link` header that refers to the next page; empty on the last page. */
export interface Page {
  items: string[]
  linkHeaders: Readonly<Record<string, string>>
}

/** Applies the parameters `n` (page size) and `last` (last item of the previous page). */
export function pageOf(allItems: readonly string[], path: string, query: URLSearchParams): Page {
  const limit = query.get('n') ?? String(maxPageSize)
  if (!/^\d{1,9}$/.test(limit)) throw new RegistryServerError('PAGINATION_NUMBER_INVALID', 'n must be a whole number.')
  const pageSize = Math.min(Number(limit), maxPageSize)
  const last = query.get('last')
  const remainingItems = last === null ? allItems : allItems.filter((item) => item > last)
  const items = remainingItems.slice(0, pageSize)
  const [lastItem] = items.slice(-1)
  if (lastItem === undefined || remainingItems.length <= items.length) return { items, linkHeaders: {} }
  return { items, linkHeaders: { link: `<${path}?n=${pageSize}&last=${encodeURIComponent(lastItem)}>; rel="next"` } }
}
