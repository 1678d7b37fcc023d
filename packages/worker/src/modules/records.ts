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

/** Truncates the state that a module reports when it is loaded to the stored size. */
export const reportedState = ({ subscriptions, warnings }: Pick<ModuleRecord, 'subscriptions' | 'warnings'>) => ({
  subscriptions: subscriptions.slice(0, subscriptionLimit),
  warnings: [
    ...(subscriptions.length > subscriptionLimit
      ? [`Only the first ${subscriptionLimit} subscriptions are used.`]
      : []),
    ...warnings,
  ].slice(0, warningLimit),
})

export async function findModule(moduleId: string): Promise<ModuleRecord | undefined> {
  const item = await get(keys.module(moduleId))
  return item && parseModule(item)
}

export async function currentInstallState(moduleId: string): Promise<InstallState> {
  const [item, routes] = await getConsistent([keys.module(moduleId), keys.moduleRoutes()])
  return { module: item && parseModule(item), routes: parseRoutes(routes) }
}
