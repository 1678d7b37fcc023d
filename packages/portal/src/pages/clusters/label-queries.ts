import { queryOptions, useQuery } from '@tanstack/react-query'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { sitesQuery } from './cluster-queries.ts'
import type { KnownLabel } from './selector-completions.ts'

export type Labels = Schemas['ClusterSummary']['labels']

// Reads the labels of all clusters, so it is not repeated while the user types.
const labelsQuery = queryOptions({
  queryKey: ['labels'],
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/clusters/labels', { signal }))).items,
  staleTime: 60_000,
})

/** The labels of all clusters, for completion. They are loaded when `isNeeded` is true for the first time. */
export function useKnownLabels(isNeeded: boolean): KnownLabel[] {
  const { data: labels = [] } = useQuery({ ...labelsQuery, enabled: isNeeded })
  const { data: sites = [] } = useQuery({ ...sitesQuery, enabled: isNeeded })
  const names = new Map(sites.map(({ id, name }) => [id, name]))
  return labels.map((label) =>
    label.key === 'platform/site'
      ? { ...label, values: label.values.map((each) => ({ ...each, name: names.get(each.value) })) }
      : label,
  )
}
