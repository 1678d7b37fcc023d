import * as z from 'zod'
import { ModuleRelease } from './record.ts'
import { type OperationRecord } from '../operations/record.ts'

/** What the operations on modules are done with, and their steps in order (D47). */

export const installSteps = ['verify', 'deploy', 'configure', 'start', 'probe', 'publish'] as const
export const uninstallSteps = ['stop', 'remove'] as const

/**
 * `release` is the wanted one, found good. `previousVersion`: the module's row was there before, with another release that
 * it goes back to where this one fails: `Running` where the row has a deployment, else `Failed`. Its claim of a path is
 * still that of the other release. Without it the row and the claim are new, and go.
 */
const InstallPlan = z.object({ release: ModuleRelease, previousVersion: z.string().optional() })
export type InstallPlan = z.infer<typeof InstallPlan>

const UninstallPlan = z.object({ moduleId: z.string(), version: z.string() })
export type UninstallPlan = z.infer<typeof UninstallPlan>

/** The plan of a `ModuleInstall`. */
export const installPlan = ({ plan }: OperationRecord): InstallPlan => InstallPlan.parse(plan)

/** The plan of a `ModuleUninstall`. What is to be stopped stands in the module's row. */
export const uninstallPlan = ({ plan }: OperationRecord): UninstallPlan => UninstallPlan.parse(plan)
