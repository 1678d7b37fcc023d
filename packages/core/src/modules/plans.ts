import * as z from 'zod'
import { ModuleRelease } from './record.ts'
import type { OperationRecord } from '../operations/record.ts'

export const installSteps = ['verify', 'deploy', 'configure', 'start', 'probe', 'publish'] as const
export const uninstallSteps = ['stop', 'remove'] as const

/**
 * `release` is the verified new release. With `previousVersion`, the module existed: on failure it keeps its release
 * and route reservation, and becomes `Running` if it has a deployment, otherwise `Failed`. Without `previousVersion`,
 * the record and the reservation are new and are removed on failure.
 */
const InstallPlan = z.object({ release: ModuleRelease, previousVersion: z.string().optional() })
export type InstallPlan = z.infer<typeof InstallPlan>

const UninstallPlan = z.object({ moduleId: z.string(), version: z.string() })
export type UninstallPlan = z.infer<typeof UninstallPlan>

export const installPlan = ({ plan }: OperationRecord): InstallPlan => InstallPlan.parse(plan)

export const uninstallPlan = ({ plan }: OperationRecord): UninstallPlan => UninstallPlan.parse(plan)
