import type { OrganisationQuotas } from '@platform/contract/organisation'
import * as z from 'zod'
import { config } from '../config.ts'
import type { Item } from '../db/table.ts'
import { PlatformError } from '../error.ts'

/** The transaction that adds a resource checks the count that it changes, so concurrent requests respect the quota. */

const quota = z.number().nullable().default(null)

/** Stored in the organisation's record. Null means the default of the platform. */
const StoredQuotas = z.object({ clusters: quota, users: quota, webhooks: quota, activeJobs: quota }).prefault({})

export const resources = ['clusters', 'users', 'webhooks', 'activeJobs'] as const
export type Resource = (typeof resources)[number]

const defaults: Readonly<Record<Resource, number>> = {
  clusters: config.PLAT_QUOTA_CLUSTERS,
  users: config.PLAT_QUOTA_USERS,
  webhooks: config.PLAT_QUOTA_WEBHOOKS,
  activeJobs: config.PLAT_QUOTA_ACTIVE_JOBS,
}

export const quotasOf = (organisation: Item | undefined): OrganisationQuotas =>
  StoredQuotas.parse(organisation?.['quotas'])

export const quotaOf = (organisation: Item | undefined, resource: Resource): number =>
  quotasOf(organisation)[resource] ?? defaults[resource]

const pluralNames: Readonly<Record<Resource, string>> = {
  clusters: 'clusters',
  users: 'users',
  webhooks: 'webhooks',
  activeJobs: 'queued and running jobs',
}

export const quotaReachedError = (
  resource: Resource,
  { limit, used }: { limit: number; used: number },
): PlatformError =>
  new PlatformError(
    'limit_reached',
    `The organisation may have ${limit} ${pluralNames[resource]} and has ${used}. Wait or remove some, or ask the operator of the platform for a higher quota.`,
    { limit, used: Math.max(0, used) },
  )

/** Throws `limit_reached` if one more resource would exceed the quota. */
export function checkQuota(organisation: Item | undefined, resource: Resource, usedCount: number): void {
  const limit = quotaOf(organisation, resource)
  if (usedCount >= limit) throw quotaReachedError(resource, { limit, used: usedCount })
}
