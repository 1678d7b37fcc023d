import * as keys from '@platform/core/db/keys'
import { get, getConsistent } from '@platform/core/db/table'
import type { InstallState } from '@platform/core/modules/install-state'
import { isServing } from '@platform/core/modules/module'
import type { Deployment } from '@platform/core/modules/deployment'
import { type ModuleRecord, type ModuleRelease, parseModule, publisherOf } from '@platform/core/modules/record'
import { parseRoutes, type RouteReservation } from '@platform/core/modules/routes'
import type { ModuleManifest } from '@platform/contract/manifest'
import { isSubscribed } from '@platform/core/webhooks/record'
import { sanitize } from './lifecycle/control-client.ts'

export type ServingModule = ModuleRecord & { deployment: Deployment }

export const hasDeployment = (record: ModuleRecord): record is ServingModule =>
  isServing(record) && record.deployment !== undefined

/** Limits the subscriptions of a module, because all modules share the item of the route reservations. */
const maxSubscriptions = 50
const maxWarnings = 20

/** Returns the state that a module reports at its start, without undeclared subscriptions and within the limits. */
export function reportedState(
  { subscriptions: reportedTypes, warnings }: Pick<ModuleRecord, 'subscriptions' | 'warnings'>,
  { spec }: ModuleManifest,
) {
  const declaredEvents = spec.events ?? []
  const subscriptions = reportedTypes.filter((type) => isSubscribed({ events: declaredEvents }, type))
  const undeclaredTypes = reportedTypes.filter((type) => !subscriptions.includes(type))
  return {
    subscriptions: subscriptions.slice(0, maxSubscriptions),
    warnings: limitWarnings(subscriptions, [...undeclaredTypes.map(undeclaredWarning), ...warnings]),
  }
}

const undeclaredWarning = (type: string): string =>
  `${sanitize(type, 200)} is not in spec.events, so the module does not receive it.`

const limitWarnings = (subscriptions: readonly string[], warnings: readonly string[]): string[] =>
  [
    ...(subscriptions.length > maxSubscriptions ? [`Only the first ${maxSubscriptions} subscriptions are used.`] : []),
    ...warnings,
  ].slice(0, maxWarnings)

export function reservationOf(
  release: ModuleRelease,
  serving: { deployment?: Deployment; subscriptions?: string[] } = {},
): RouteReservation {
  const { apiBasePath, permissionsRequired } = release.manifest.spec
  return { apiBasePath, permissions: permissionsRequired ?? [], publisher: publisherOf(release), ...serving }
}

export async function findModule(moduleId: string): Promise<ModuleRecord | undefined> {
  const item = await get(keys.module(moduleId))
  return item && parseModule(item)
}

export async function currentInstallState(moduleId: string): Promise<InstallState> {
  const [item, routes] = await getConsistent([keys.module(moduleId), keys.moduleRoutes()])
  return { module: item && parseModule(item), routes: parseRoutes(routes) }
}
