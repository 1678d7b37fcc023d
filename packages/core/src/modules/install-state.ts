import { type Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { type Step, patch } from '../db/table.ts'
import { fault } from '../error.ts'
import { type ModuleRoutes, parseRoutes } from './routes.ts'
import { type ModuleRow, parseModule } from './record.ts'
import { standingWith } from '../accounts/current-rights.ts'

/** One operation at a time on a module: its row names the job that changes it. */

/** A module as it stands now, and all claims of paths. */
export interface Standing {
  row: ModuleRow | undefined
  routes: ModuleRoutes
}

/** What an operation on a module begins with: its caller may still do so. One call. */
export async function standingOf(caller: Caller, moduleId: string): Promise<Standing> {
  const wanted = [keys.module(moduleId), keys.moduleRoutes()]
  const [, item, routes] = await standingWith(caller, ['modules:install'], wanted)
  return { row: item && parseModule(item), routes: parseRoutes(routes) }
}

/** Throws `module_operation_in_progress` where a job changes the module just now. */
export function refuseIfLocked(row: ModuleRow | undefined): void {
  if (row?.jobId !== undefined) throw fault('module_operation_in_progress')
}

/** The step by which an operation takes a module that is there; refused where it has changed since it was read. */
export const lockStep = (row: ModuleRow, set: Pick<ModuleRow, 'state' | 'jobId' | 'updatedAtMs'>): Step =>
  patch(keys.module(row.id), { set }, { jobId: { absent: true }, updatedAtMs: { is: row.updatedAtMs } })
