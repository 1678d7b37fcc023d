import { type Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { removeAll, transact } from '@platform/core/db/transact'
import { get, query, remove } from '@platform/core/db/table'
import { type ModuleRecord, parseModule } from '@platform/core/modules/record'
import { type ModuleRegistry } from '../../support/module-registry.ts'
import { newCaller } from '../../support/fixtures.ts'
import { catalogRelease, putCatalog } from './modules.ts'

/** What installs begin with, and what they leave. */

export const newPlatformAdmin = (): Promise<Caller> => newCaller(undefined, 'PlatformAdmin')

export async function moduleRecord(id: string): Promise<ModuleRecord | undefined> {
  const item = await get(keys.module(id))
  return item && parseModule(item)
}

/** How many installs an organisation has on its list of jobs. */
export const countInstallJobs = async ({ organisationId }: Caller): Promise<number> =>
  (await query({ index: 'gsi1', pk: keys.operationsOf(organisationId, 'ModuleInstall') })).items.length

/** Nothing is installed, and nothing is known of the sources. */
export async function clearModules(): Promise<void> {
  await removeAll(keys.modules())
  await removeAll(keys.catalog())
  await transact([remove(keys.moduleRoutes())])
}

/** Images of these versions in the registry, and the catalog as a scan finds it: a `?` behind a version is not signed. */
export async function offerReleases(registry: ModuleRegistry, id: string, ...versions: string[]): Promise<void> {
  const releases = versions.map(async (text) => {
    const [version, signer] = text.endsWith('?') ? [text.slice(0, -1), false as const] : [text, 'trusted' as const]
    const { digest } = await registry.push(id, { version, signer })
    const isVerified = signer === 'trusted'
    return catalogRelease(id, version, { digest, isVerified, ...(!isVerified && { reason: 'No signature of it.' }) })
  })
  await putCatalog({ [`${registry.host}/modules/${id}`]: await Promise.all(releases) })
}
