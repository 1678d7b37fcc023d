import * as keys from '@platform/core/db/keys'
import { get, getConsistent } from '@platform/core/db/table'
import { type InstallState } from '@platform/core/modules/install-state'
import { isServing } from '@platform/core/modules/module'
import { type Deployment, type ModuleRecord, parseModule } from '@platform/core/modules/record'
import { parseRoutes } from '@platform/core/modules/routes'

export type ServingModule = ModuleRecord & { deployment: Deployment }

export const hasDeployment = (record: ModuleRecord): record is ServingModule =>
  isServing(record) && record.deployment !== undefined

/** Limits per module, because all modules share the item of the route reservations. */
const subscriptionLimit = 50
const warningLimit = 20

/** The stored part of the state that a module reports when it is loaded. */
export const reportedState = ({ subscriptions, warnings }: Pick<ModuleRecord, 'subscriptions' | 'warnings'>) => ({
  subscriptions: subscriptions.slice(0, subscriptionLimit),
  warnings: [
    ...(subscriptions.length > subscriptionLimit ? [`Only ${subscriptionLimit} of its subscriptions count.`] : []),
    ...warnings,
  ].slice(0, warningLimit),
})

/** A module's record, if it exists. One call. */
export async function findModule(moduleId: string): Promise<ModuleRecord | undefined> {
  const item = await get(keys.module(moduleId))
  return item && parseModule(item)
}

/** A module's current record, and all route reservations. One call. */
export async function currentInstallState(moduleId: string): Promise<InstallState> {
  const [item, routes] = await getConsistent([keys.module(moduleId), keys.moduleRoutes()])
  return { module: item && parseModule(item), routes: parseRoutes(routes) }
}
