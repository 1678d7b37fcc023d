import { defined, oneOfIn, textIn } from '../../app/search.ts'
import type { Cluster } from './cluster-queries.ts'

export const clusterStatuses = ['Healthy', 'Degraded', 'Pending', 'Offline'] as const satisfies Cluster['status'][]
export const clusterTypes = ['Hypervisor', 'CloudLocal'] as const satisfies Cluster['type'][]

/** What the list of clusters is narrowed to; the address holds it, and saved filters do. */
export interface ClusterFilter {
  status?: Cluster['status']
  type?: Cluster['type']
  /** Part of a name. */
  search?: string
}

/** The most that a search may hold. */
export const longestSearch = 64

/** Of a saved filter what the list can be narrowed to: whoever wrote it was free to write anything. */
export const filterOf = (saved: Record<string, unknown>): ClusterFilter =>
  defined({
    status: oneOfIn(saved, 'status', clusterStatuses),
    type: oneOfIn(saved, 'type', clusterTypes),
    search: textIn(saved, 'search')?.trim().slice(0, longestSearch),
  })

export const isFiltered = (filter: ClusterFilter): boolean => Object.keys(filter).length > 0

/** A filter in words. */
export const filterText = ({ status, type, search }: ClusterFilter): string =>
  [status, type, search !== undefined && `“${search}” in the name`].filter(Boolean).join(', ') || 'all clusters'
