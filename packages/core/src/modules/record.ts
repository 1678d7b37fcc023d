import { ModuleId, ModuleManifest } from '@platform/contract/manifest'
import { moduleErrorCodes, moduleHealths, moduleStates } from '@platform/contract/module'
import * as z from 'zod'
import type { Item } from '../db/table.ts'
import { jsonString } from '../lib/validate.ts'
import { Deployment } from './deployment.ts'

/** The manifest was validated at installation, possibly by another release of the platform with another schema. */
const StoredManifest = z.union([
  ModuleManifest,
  z.custom<ModuleManifest>((value) => typeof value === 'object' && value !== null),
])

export const ModuleRelease = z.object({
  moduleId: z.string(),
  version: z.string(),
  repository: z.string(),
  /** The digest of the referenced manifest or index, or of the image if only the image in the index is signed. */
  digest: z.string(),
  manifest: StoredManifest,
  isVerified: z.boolean(),
  verifiedBy: z.string().optional(),
})
export type ModuleRelease = z.infer<typeof ModuleRelease>

/** The name of the key that signs the modules in the embedded registry of a one-machine platform. */
export const ownKeyName = 'this platform'

/**
 * Returns the key that signed a release, or the repository of an unverified release. Consents to a module apply only to
 * releases of the same publisher.
 */
export const publisherOf = ({ isVerified, verifiedBy, repository }: ModuleRelease): string =>
  isVerified ? `key ${verifiedBy}` : `repository ${repository}`

export const isSeeded = ({ isVerified, verifiedBy }: Pick<ModuleRelease, 'isVerified' | 'verifiedBy'>): boolean =>
  isVerified && verifiedBy === ownKeyName

const ModuleError = z.object({ code: z.enum(moduleErrorCodes), message: z.string(), atMs: z.number() })

/** A record also exists during a first installation. */
export const ModuleRecord = z.object({
  id: z.string(),
  /** The platform's own organisation, which owns the module's jobs, events and audit entries. */
  organisationId: z.string(),
  state: z.enum(moduleStates),
  /** The running or failed release; during a first installation, the new one. */
  release: jsonString(ModuleRelease),
  /** Absent in the states Installing and Failed, and while a failed module is uninstalled. */
  deployment: jsonString(Deployment).optional(),
  subscriptions: z.array(z.string()).default([]),
  warnings: z.array(z.string()).default([]),
  error: jsonString(ModuleError).optional(),
  /** Set while an operation runs; locks the module against other operations. */
  jobId: z.string().optional(),
  installedAtMs: z.number().optional(),
  updatedAtMs: z.number(),
})
export type ModuleRecord = z.infer<typeof ModuleRecord>

export const isModuleId = (text: string): boolean => ModuleId.safeParse(text).success

export const parseModule = (item: Item): ModuleRecord => ModuleRecord.parse(item)

export const serialise = (value: object): string => JSON.stringify(value)

const StoredCheck = z.object({
  name: z.string(),
  status: z.enum(['Healthy', 'Degraded', 'Unhealthy']),
  tags: z.array(z.enum(['informational', 'degradable', 'critical'])),
  description: z.string(),
  durationMs: z.number(),
  checkedAtMs: z.number(),
})
export type StoredCheck = z.infer<typeof StoredCheck>

/** An informational check does not affect the health of its module. A check without tags does. */
export const isInformational = (tags: StoredCheck['tags']): boolean =>
  tags.includes('informational') && !tags.includes('critical') && !tags.includes('degradable')

/**
 * A module is Unhealthy after this many consecutive health checks without a response, or consecutive missed runs of a
 * background job.
 */
export const missedLimit = 2

/** `missed` counts consecutive checks without a response. */
export const ModuleHealthRecord = z.object({
  health: z.enum(moduleHealths),
  checks: jsonString(z.array(StoredCheck)),
  missed: z.number().default(0),
  /** Consecutive missed runs by background job. A successful run removes the entry of its job. */
  missedRuns: z.record(z.string(), z.number()).default({}),
  /** The last due time in milliseconds, by background job. */
  slots: z.record(z.string(), z.number()).default({}),
  /** Incremented by every write, so that only one of several concurrent supervision runs calls the background jobs. */
  revision: z.number().default(0),
})
export type ModuleHealthRecord = z.infer<typeof ModuleHealthRecord>
