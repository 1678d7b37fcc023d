import * as z from 'zod'
import type { Item } from '../db/table.ts'
import { jsonString } from '../lib/validate.ts'
import { isReleased, version } from '../lib/version.ts'
import { RelayProgram } from './release-document.ts'
import type { OperationRecord } from '../operations/record.ts'

/** A release without a digest was deployed instead of applied by an update. */
const InstalledRelease = z.object({
  version: z.string(),
  repository: z.string().optional(),
  digest: z.string().optional(),
  relay: RelayProgram.optional(),
})
export type InstalledRelease = z.infer<typeof InstalledRelease>

/** `jobId` is the job of a running update; it locks the platform against other updates. */
export const UpdateState = z.object({
  current: jsonString(InstalledRelease).optional(),
  previous: jsonString(InstalledRelease).optional(),
  jobId: z.string().optional(),
  revision: z.number().default(0),
})
export type UpdateState = z.infer<typeof UpdateState>

export const parseUpdateState = (item: Item | undefined): UpdateState => UpdateState.parse(item ?? {})

export const updateSteps = ['preflight', 'stage', 'smoke', 'shift-10', 'shift-50', 'shift-100', 'commit'] as const
export const rollbackSteps = ['preflight', 'stage', 'smoke', 'shift-100', 'commit'] as const

/** `release` becomes active; `before` is the rollback target. */
const UpdatePlan = z.object({
  action: z.enum(['apply', 'rollback']),
  release: InstalledRelease,
  before: InstalledRelease,
})
export type UpdatePlan = z.infer<typeof UpdatePlan>

export const updatePlan = ({ plan }: OperationRecord): UpdatePlan => UpdatePlan.parse(plan)

export interface FetchedRelease extends InstalledRelease {
  digest: string
}

export function releaseIdentity(release: FetchedRelease): { version: string; repository?: string; digest: string }
export function releaseIdentity(release: InstalledRelease): InstalledRelease
export function releaseIdentity({ version, repository, digest }: InstalledRelease): InstalledRelease {
  return { version, ...(repository !== undefined && { repository }), ...(digest !== undefined && { digest }) }
}

/** Compares the versions and digests; the repositories may differ. */
export const isSameRelease = (one: InstalledRelease, other: InstalledRelease): boolean =>
  one.version === other.version && one.digest === other.digest

/** Returns false if a deployment has replaced the applied release, possibly by one of the same version. */
const isApplied = ({ version: installedVersion, digest }: InstalledRelease): boolean =>
  installedVersion === version && (digest !== undefined) === isReleased

/** Returns only the version if the release was deployed. */
export const activeRelease = ({ current }: UpdateState): InstalledRelease =>
  current !== undefined && isApplied(current) ? current : { version }

export const previousRelease = ({ current, previous }: UpdateState): InstalledRelease | undefined =>
  current !== undefined && isApplied(current) ? previous : undefined
