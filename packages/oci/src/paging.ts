import type * as z from 'zod'
import { headerOf } from './response.ts'
import { parseDocument } from './document.ts'
import { RegistryError } from './error.ts'
import { linkTo } from './origin.ts'
import type { TransportAnswer } from './transport.ts'
import type { Call, RegistryConnection } from './connection.ts'

const mostPages = 500
const mostBytes = 16 * 1024 * 1024
const pageBytes = 4 * 1024 * 1024

/** A paginated list of a registry: the first request, and the schema of a page. */
export interface List<Page extends z.ZodType> extends Pick<Call, 'what' | 'url' | 'scopes' | 'headers'> {
  page: Page
  /** Statuses of registries without this list. They yield no page. */
  absent?: readonly number[]
}

/**
 * Yields the pages of a list by following `Link` headers: at most 500 pages and 16 MiB in total, no page twice, all
 * from the same registry. One request per page. Throws `RegistryError`.
 */
export async function* pagesOf<Page extends z.ZodType>(
  wire: RegistryConnection,
  { page, absent = [], ...call }: List<Page>,
): AsyncGenerator<z.output<Page>> {
  const seen = new Set<string>()
  let bytes = 0
  for (let url: URL | undefined = call.url; url !== undefined;) {
    if (seen.has(url.href)) throw endless(wire, call.what, 'leads back to a page that was there before')
    if (seen.size === mostPages) throw endless(wire, call.what, `has more than ${mostPages} pages`)
    seen.add(url.href)
    const answer: TransportAnswer = await wire.send({
      ...call,
      method: 'GET',
      url,
      statuses: [200, ...absent],
      maxBytes: pageBytes,
    })
    if (answer.status !== 200) return
    bytes += answer.body.length
    if (bytes > mostBytes) throw endless(wire, call.what, `is larger than ${mostBytes >> 20} MiB`)
    yield parseDocument(page, answer, `The answer of registry ${wire.registry} to ${call.what}`)
    url = nextOf(wire, call.what, answer, url)
  }
}

const endless = ({ registry }: RegistryConnection, what: string, how: string): RegistryError =>
  new RegistryError('too_large', `Registry ${registry}: ${what} ${how}. Name what you need instead of listing.`)

/** The URL of the next page; undefined after the last one. */
function nextOf(wire: RegistryConnection, what: string, answer: TransportAnswer, from: URL): URL | undefined {
  const link = headerOf(answer, 'link')?.slice(0, 4096) ?? ''
  const address = /<([^<>]*)>[^,<>]*;\s*rel="?next"?/i.exec(link)?.[1]
  if (address === undefined) return undefined
  const url = linkTo(address, from)
  if (url !== undefined && wire.isOwn(url)) return url
  throw new RegistryError(
    'refused',
    `Registry ${wire.registry}: ${what} goes on at another host. Nothing is asked there.`,
  )
}
