import type { paths } from '@platform/contract/openapi-types'
import { oneOfIn, textIn, withoutUndefined } from '../../lib/search.ts'
import type { Cluster } from './cluster-queries.ts'

export const clusterStatuses = ['Healthy', 'Degraded', 'Pending', 'Offline'] as const satisfies Cluster['status'][]
export const noClusters = { Healthy: 0, Degraded: 0, Pending: 0, Offline: 0 }
export const clusterTypes = ['Hypervisor', 'CloudLocal'] as const satisfies Cluster['type'][]

type Query<Path extends '/api/v1/clusters' | '/api/v1/nodes'> = NonNullable<paths[Path]['get']['parameters']['query']>

const bothOrders = <const Field extends string>(fields: readonly Field[]) =>
  fields.flatMap((field) => [field, `-${field}` as const])

export const clusterSorts = bothOrders([
  'name',
  'registeredAt',
  'status',
  'lastSeenAt',
  'nodeCount',
  'type',
  'site',
  'os',
  'arch',
  'relayVersion',
]) satisfies Query<'/api/v1/clusters'>['sort'][]

export const nodeSorts = bothOrders([
  'name',
  'os',
  'arch',
  'cpus',
  'memoryBytes',
  'rootDiskFreeBytes',
]) satisfies Query<'/api/v1/nodes'>['sort'][]

export type ClusterSort = (typeof clusterSorts)[number]

/** The filter of the cluster list, stored in the URL and in saved filters. */
export interface ClusterFilter {
  status?: Cluster['status']
  type?: Cluster['type']
  search?: string
  selector?: string
}

/** The maximum length of a search that the API accepts. */
export const maxSearchLength = 64

/** Returns the valid fields of a saved filter. Other clients may have stored any values. */
export const filterOf = (savedFilter: Record<string, unknown>): ClusterFilter =>
  withoutUndefined({
    status: oneOfIn(savedFilter, 'status', clusterStatuses),
    type: oneOfIn(savedFilter, 'type', clusterTypes),
    search: textIn(savedFilter, 'search')?.trim().slice(0, maxSearchLength),
    selector: textIn(savedFilter, 'selector'),
  })

export const isFiltered = (filter: ClusterFilter): boolean => Object.keys(filter).length > 0

export const filterText = ({ status, type, search, selector }: ClusterFilter): string =>
  [status, type, search !== undefined && `name contains “${search}”`, selector].filter(Boolean).join(', ') ||
  'all clusters'
