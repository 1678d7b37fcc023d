import { type Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { removeAll, transact } from '@platform/core/db/transact'
import { get, query, remove } from '@platform/core/db/table'
import { type ModuleRecord, parseModule } from '@platform/core/modules/record'
import { type ModuleRegistry } from '../../support/module-registry.ts'
import { newCaller } from '../../support/fixtures.ts'
import { catalogRelease, putCatalog } from './modules.ts'

export const newPlatformAdmin = (): Promise<Caller> => newCaller(undefined, 'PlatformAdmin')

export async function moduleRecord(id: string): Promise<ModuleRecord | undefined> {
  const item = await get(keys.module(id))
  return item && parseModule(item)
}

/** The number of installs in an organisation's list of jobs. */
export const countInstallJobs = async ({ organisationId }: Caller): Promise<number> =>
  (await query({ index: 'gsi1', pk: keys.operationsOf(organisationId, 'ModuleInstall') })).items.length

/** Removes all modules and the catalog. */
export async function clearModules(): Promise<void> {
  await removeAll(keys.modules())
  await removeAll(keys.catalog())
  await transact([remove(keys.moduleRoutes())])
}

/** Pushes images of these versions and stores them in the catalog. A version with the suffix `?` is not signed. */
export async function offerReleases(registry: ModuleRegistry, id: string, ...versions: string[]): Promise<void> {
  const releases = versions.map(async (text) => {
    const isVerified = !text.endsWith('?')
    const version = text.replace('?', '')
    const { digest } = await registry.push(id, { version, signer: isVerified && 'trusted' })
    return catalogRelease(id, version, { digest, isVerified, ...(!isVerified && { reason: 'No signature of it.' }) })
  })
  await putCatalog({ [`${registry.host}/modules/${id}`]: await Promise.all(releases) })
}
