import { clusterStatuses, clusterTypes } from '@platform/contract/cluster'
import { SelectorText } from '@platform/contract/label'
import * as z from 'zod'
import type { Caller } from '../caller.ts'
import type { ClusterQuery } from './list.ts'
import { platformError } from '../error.ts'
import { read } from '../accounts/saved-filter.ts'

const ClusterFilter = z.strictObject({
  status: z.enum(clusterStatuses).optional(),
  type: z.enum(clusterTypes).optional(),
  search: z.string().max(64).optional(),
  selector: SelectorText.optional(),
})

/** Explicit query parameters take precedence over the saved filter. */
export async function withSavedFilter<Query extends Pick<ClusterQuery, 'status' | 'type' | 'search' | 'selector'>>(
  caller: Caller,
  { filterId, ...query }: Query & { filterId?: string | undefined },
): Promise<Omit<Query, 'filterId'>> {
  if (filterId === undefined) return query
  const { status, type, search, selector } = await clusterFilter(caller, filterId)
  return {
    ...query,
    status: query.status ?? status,
    type: query.type ?? type,
    search: query.search ?? search,
    selector: query.selector ?? selector,
  }
}

export async function clusterFilter(caller: Caller, filterId: string): Promise<z.infer<typeof ClusterFilter>> {
  const { context, filter } = await read(caller, filterId)
  const parsed = ClusterFilter.safeParse(filter)
  if (context !== 'clusters' || !parsed.success) throw platformError('filter_not_applicable')
  return parsed.data
}
