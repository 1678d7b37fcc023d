import { RegistryServerError } from './error.ts'

const maximumPage = 1000

/** `link` contains the `Link` header that refers to the next page; empty on the last page. */
export interface Page {
  items: string[]
  link: Readonly<Record<string, string>>
}

/** Applies the parameters `n` (page size) and `last` (last item of the previous page). */
export function pageOf(all: readonly string[], path: string, query: URLSearchParams): Page {
  const limit = query.get('n') ?? String(maximumPage)
  if (!/^\d{1,9}$/.test(limit)) throw new RegistryServerError('PAGINATION_NUMBER_INVALID', 'n must be a whole number.')
  const count = Math.min(Number(limit), maximumPage)
  const last = query.get('last')
  const remaining = last === null ? all : all.filter((item) => item > last)
  const items = remaining.slice(0, count)
  const [lastItem] = items.slice(-1)
  if (lastItem === undefined || remaining.length <= items.length) return { items, link: {} }
  return { items, link: { link: `<${path}?n=${count}&last=${encodeURIComponent(lastItem)}>; rel="next"` } }
}
