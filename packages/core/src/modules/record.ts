import { ModuleId, ModuleManifest } from '@platform/contract/manifest'
import { moduleErrorCodes, moduleHealths, moduleStates } from '@platform/contract/module'
import * as z from 'zod'
import { type Item } from '../db/table.ts'
import { jsonString } from '../lib/json.ts'

/** How modules are stored. JSON on purpose is what is free-form, or never read but whole. */

/** Where a release of a module runs: plain data, understood by the runtime that made it. Holds no secret. */
export const Deployment = z.object({
  runtime: z.enum(['process', 'container', 'lambda']),
  /** In words for people: what keeps it apart from the platform. */
  isolation: z.string(),
  /** Chosen by whoever deploys; deploying the same twice is deploying once. */
  id: z.string(),
  moduleId: z.string(),
  version: z.string(),
  digest: z.string(),
  /** The runtime's own name for it. */
  handle: z.string(),
})
export type Deployment = z.infer<typeof Deployment>

/**
 * A manifest that was found good when its module was installed. Another release of the platform may have done so, by a schema
 * with other fields: where it does not fit today it counts as it stands, so that the module goes on.
 */
const StoredManifest = z.union([
  ModuleManifest,
  z.custom<ModuleManifest>((value) => typeof value === 'object' && value !== null),
])

/** What a module is made of: an image by digest, the manifest that belongs to it, and who vouches for them. */
export const ModuleRelease = z.object({
  moduleId: z.string(),
  version: z.string(),
  /** `registry/repository`. */
  repository: z.string(),
  /** Of the manifest or index that the reference named. */
  digest: z.string(),
  manifest: StoredManifest,
  isVerified: z.boolean(),
  verifiedBy: z.string().optional(),
})
export type ModuleRelease = z.infer<typeof ModuleRelease>

const ModuleError = z.object({ code: z.enum(moduleErrorCodes), message: z.string(), atMs: z.number() })

/** An installed module, or one that is being installed for the first time: then nothing of it serves yet. */
export const ModuleRecord = z.object({
  id: z.string(),
  /** The platform organisation: where its jobs, events and audit entries belong. */
  organisationId: z.string(),
  state: z.enum(moduleStates),
  /** The release that serves or has failed; while Installing for the first time the one that shall serve. */
  release: jsonString(ModuleRelease),
  /** Where it runs; absent while Installing and after it Failed. */
  deployment: jsonString(Deployment).optional(),
  /** Event types that it has subscribed to. */
  subscriptions: z.array(z.string()).default([]),
  warnings: z.array(z.string()).default([]),
  error: jsonString(ModuleError).optional(),
  /** The job that changes it just now: the lock of install, upgrade and uninstall. */
  jobId: z.string().optional(),
  installedAtMs: z.number().optional(),
  updatedAtMs: z.number(),
})
export type ModuleRecord = z.infer<typeof ModuleRecord>

/** Whether a text may be the id of a module; anything else names none. */
export const isModuleId = (text: string): boolean => ModuleId.safeParse(text).success

export const parseModule = (item: Item): ModuleRecord => ModuleRecord.parse(item)

/** The stored form of whatever the row holds as JSON. */
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

/** The last probe of a module: `missed` counts probes without an answer, in a row (D44). */
export const ModuleHealthRecord = z.object({
  health: z.enum(moduleHealths),
  checks: jsonString(z.array(StoredCheck)),
  missed: z.number().default(0),
  /** Background job → its last runs that were missed, in a row; nothing of one that ran well. */
  missedRuns: z.record(z.string(), z.number()).default({}),
  /** Background job → the slot of time that it was last called in. */
  slots: z.record(z.string(), z.number()).default({}),
  /** Counts what was written of it: of two ticks at once one calls the jobs. */
  revision: z.number().default(0),
})
export type ModuleHealthRecord = z.infer<typeof ModuleHealthRecord>
