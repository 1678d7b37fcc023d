import * as z from 'zod'
import { headerOf } from './response.ts'
import { parseDocument } from './document.ts'
import { RegistryError } from './error.ts'
import { isRepository, isTag, scopeOf } from './names.ts'
import { resolveLink } from './origin.ts'
import type { TransportResponse } from './transport.ts'
import type { Call, RegistryConnection, RepositoryConnection } from './connection.ts'

const maxPages = 500
const maxTotalBytes = 16 * 1024 * 1024
const maxPageBytes = 4 * 1024 * 1024

export interface ListCall<Page extends z.ZodType> extends Pick<Call, 'description' | 'url' | 'scopes' | 'headers'> {
  page: Page
  /** Statuses of registries without this list. They yield no page. */
  statusesWithoutList?: readonly number[]
}

/**
 * Yields the pages of a list by following `Link` headers: at most 500 pages and 16 MiB in total, no page twice, all
 * from the same registry. Throws `RegistryError`.
 */
export async function* pagesOf<Page extends z.ZodType>(
  connection: RegistryConnection,
  { page, statusesWithoutList = [], ...call }: ListCall<Page>,
): AsyncGenerator<z.output<Page>> {
  const visitedUrls = new Set<string>()
  let totalBytes = 0
  for (let url: URL | undefined = call.url; url !== undefined;) {
    if (visitedUrls.has(url.href)) throw listTooLargeError(connection, call.description, 'contains a page twice')
    if (visitedUrls.size === maxPages)
      throw listTooLargeError(connection, call.description, `has more than ${maxPages} pages`)
    visitedUrls.add(url.href)
    const response: TransportResponse = await connection.send({
      ...call,
      method: 'GET',
      url,
      statuses: [200, ...statusesWithoutList],
      maxBytes: maxPageBytes,
    })
    if (response.status !== 200) return
    totalBytes += response.body.length
    if (totalBytes > maxTotalBytes)
      throw listTooLargeError(connection, call.description, `is larger than ${maxTotalBytes >> 20} MiB`)
    yield parseDocument(page, response, `The response of registry ${connection.registry} to ${call.description}`)
    url = nextPageUrl(connection, call.description, response, url)
  }
}

const listTooLargeError = ({ registry }: RegistryConnection, description: string, reason: string): RegistryError =>
  new RegistryError('too_large', `Registry ${registry}: ${description} ${reason}. Specify a name instead of listing.`)

function nextPageUrl(
  connection: RegistryConnection,
  description: string,
  response: TransportResponse,
  from: URL,
): URL | undefined {
  const link = headerOf(response, 'link')?.slice(0, 4096) ?? ''
  const address = /<([^<>]*)>[^,<>]*;\s*rel="?next"?/i.exec(link)?.[1]
  if (address === undefined) return undefined
  const url = resolveLink(address, from)
  if (url !== undefined && connection.isOwn(url)) return url
  throw new RegistryError(
    'refused',
    `Registry ${connection.registry}: ${description} continues at another host. The link was not followed.`,
  )
}

// Some registries return null for an empty list.
const RepositoriesPage = z.object({ repositories: z.array(z.string().refine(isRepository)).nullable() })
const TagsPage = z.object({ tags: z.array(z.string().refine(isTag)).nullable() })

const pageSize = 100

export async function* listRepositories(connection: RegistryConnection): AsyncGenerator<string> {
  const url = connection.urlOf(`_catalog?n=${pageSize}`)
  const call = {
    description: 'the list of its repositories',
    url,
    scopes: ['registry:catalog:*'],
    page: RepositoriesPage,
  }
  for await (const { repositories } of pagesOf(connection, call)) yield* repositories ?? []
}

export async function* listTags(target: RepositoryConnection): AsyncGenerator<string> {
  const url = target.urlOf(`${target.repository}/tags/list?n=${pageSize}`)
  const call = {
    description: `the tags of ${target.repository}`,
    url,
    scopes: [scopeOf(target.repository, 'pull')],
    page: TagsPage,
  }
  for await (const { tags } of pagesOf(target, call)) yield* tags ?? []
}
