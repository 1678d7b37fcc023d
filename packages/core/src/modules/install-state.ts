import type { Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { type WriteItem, patch } from '../db/table.ts'
import { platformError } from '../error.ts'
import { type ModuleRoutes, parseRoutes } from './routes.ts'
import { type ModuleRecord, parseModule } from './record.ts'
import { reauthorize } from '../accounts/current-rights.ts'

export interface InstallState {
  module: ModuleRecord | undefined
  routes: ModuleRoutes
}

export async function readInstallState(caller: Caller, moduleId: string): Promise<InstallState> {
  const itemKeys = [keys.module(moduleId), keys.moduleRoutes()]
  const [, item, routes] = await reauthorize(caller, ['modules:install'], itemKeys)
  return { module: item && parseModule(item), routes: parseRoutes(routes) }
}

export function rejectIfLocked(module: ModuleRecord | undefined): void {
  if (module?.jobId !== undefined) throw platformError('module_operation_in_progress')
}

/** The write fails if the module was changed since it was read. */
export const lockWrite = (
  module: ModuleRecord,
  set: Pick<ModuleRecord, 'state' | 'jobId' | 'updatedAtMs'>,
): WriteItem =>
  patch(keys.module(module.id), { set }, { jobId: { absent: true }, updatedAtMs: { is: module.updatedAtMs } })
