import { type Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { type WriteItem, patch } from '../db/table.ts'
import { platformError } from '../error.ts'
import { type ModuleRoutes, parseRoutes } from './routes.ts'
import { type ModuleRecord, parseModule } from './record.ts'
import { reauthorize } from '../accounts/current-rights.ts'

/** One operation at a time on a module: its row names the job that changes it. */

/** A module as it stands now, and all claims of paths. */
export interface InstallState {
  row: ModuleRecord | undefined
  routes: ModuleRoutes
}

/** What an operation on a module begins with: its caller may still do so. One call. */
export async function readInstallState(caller: Caller, moduleId: string): Promise<InstallState> {
  const wanted = [keys.module(moduleId), keys.moduleRoutes()]
  const [, item, routes] = await reauthorize(caller, ['modules:install'], wanted)
  return { row: item && parseModule(item), routes: parseRoutes(routes) }
}

/** Throws `module_operation_in_progress` where a job changes the module just now. */
export function rejectIfLocked(row: ModuleRecord | undefined): void {
  if (row?.jobId !== undefined) throw platformError('module_operation_in_progress')
}

/** The step by which an operation takes a module that is there; refused where it has changed since it was read. */
export const lockWrite = (row: ModuleRecord, set: Pick<ModuleRecord, 'state' | 'jobId' | 'updatedAtMs'>): WriteItem =>
  patch(keys.module(row.id), { set }, { jobId: { absent: true }, updatedAtMs: { is: row.updatedAtMs } })
