import type { LinkProps } from '@tanstack/react-router'

/** Returns the link to the page of a resource, by the prefix of its id, or undefined if the resource has no page. */
export function resourceLink(id: string): LinkProps | undefined {
  if (!/^[a-z]+_[0-9a-z]+$/.test(id)) return undefined
  const [kind] = id.split('_')
  if (kind === 'clus') return { to: '/clusters/$clusterId', params: { clusterId: id } }
  if (kind === 'job') return { to: '/jobs/$jobId', params: { jobId: id } }
  if (kind === 'batch') return { to: '/jobs/batches/$batchId', params: { batchId: id } }
  if (kind === 'rupd') return { to: '/clusters/relay-updates', search: { update: id } }
  return undefined
}
