import { clusterStatuses, clusterTypes } from '@platform/contract/cluster'
import * as z from 'zod'
import { type Caller } from '../caller.ts'
import { type ClusterQuery } from './list.ts'
import { platformError } from '../error.ts'
import { read } from '../accounts/saved-filter.ts'

const ClusterFilter = z.strictObject({
  status: z.enum(clusterStatuses).optional(),
  type: z.enum(clusterTypes).optional(),
  search: z.string().max(64).optional(),
})

/** Explicit query parameters take precedence over the saved filter. */
export async function withSavedFilter<Query extends Pick<ClusterQuery, 'status' | 'type' | 'search'>>(
  caller: Caller,
  { filterId, ...query }: Query & { filterId?: string | undefined },
): Promise<Omit<Query, 'filterId'>> {
  if (filterId === undefined) return query
  const { context, filter } = await read(caller, filterId)
  const parsed = ClusterFilter.safeParse(filter)
  if (context !== 'clusters' || !parsed.success) throw platformError('filter_not_applicable')
  const { status, type, search } = parsed.data
  return { ...query, status: query.status ?? status, type: query.type ?? type, search: query.search ?? search }
}
