import { type Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { type WriteItem, patch } from '../db/table.ts'
import { platformError } from '../error.ts'
import { type ModuleRoutes, parseRoutes } from './routes.ts'
import { type ModuleRecord, parseModule } from './record.ts'
import { reauthorize } from '../accounts/current-rights.ts'

/** One operation at a time per module: its record has the job id. */

/** A module's current record, and all route reservations. */
export interface InstallState {
  row: ModuleRecord | undefined
  routes: ModuleRoutes
}

/** The state before an operation on a module, after checking the caller's current rights. One call. */
export async function readInstallState(caller: Caller, moduleId: string): Promise<InstallState> {
  const wanted = [keys.module(moduleId), keys.moduleRoutes()]
  const [, item, routes] = await reauthorize(caller, ['modules:install'], wanted)
  return { row: item && parseModule(item), routes: parseRoutes(routes) }
}

/** Throws `module_operation_in_progress` while a job changes the module. */
export function rejectIfLocked(row: ModuleRecord | undefined): void {
  if (row?.jobId !== undefined) throw platformError('module_operation_in_progress')
}

/** Locks an existing module for an operation. Fails if it has changed since it was read. */
export const lockWrite = (row: ModuleRecord, set: Pick<ModuleRecord, 'state' | 'jobId' | 'updatedAtMs'>): WriteItem =>
  patch(keys.module(row.id), { set }, { jobId: { absent: true }, updatedAtMs: { is: row.updatedAtMs } })
