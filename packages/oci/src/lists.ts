import * as z from 'zod'
import { isRepository, isTag, scopeOf } from './names.ts'
import { pagesOf } from './paging.ts'
import type { RegistryConnection } from './connection.ts'

// Registries written in Go return null for an empty list.
const RepositoriesPage = z.object({ repositories: z.array(z.string().refine(isRepository)).nullable() })
const TagsPage = z.object({ tags: z.array(z.string().refine(isTag)).nullable() })

const pageSize = 100

export async function* listRepositories(connection: RegistryConnection): AsyncGenerator<string> {
  const url = connection.at(`_catalog?n=${pageSize}`)
  const call = { what: 'the list of its repositories', url, scopes: ['registry:catalog:*'], page: RepositoriesPage }
  for await (const { repositories } of pagesOf(connection, call)) yield* repositories ?? []
}

export async function* listTags(connection: RegistryConnection, repository: string): AsyncGenerator<string> {
  const url = connection.at(`${repository}/tags/list?n=${pageSize}`)
  const call = { what: `the tags of ${repository}`, url, scopes: [scopeOf(repository, 'pull')], page: TagsPage }
  for await (const { tags } of pagesOf(connection, call)) yield* tags ?? []
}
