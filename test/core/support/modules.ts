import { randomUUID } from 'node:crypto'
import { type ModuleManifest } from '@platform/contract/manifest'
import { storeCatalog, readCatalog } from '@platform/core/modules/catalog/catalog'
import { type CatalogRelease } from '@platform/core/modules/catalog/record'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { replace, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { reserveRoutesWrite, readRoutes } from '@platform/core/modules/routes'
import {
  type Deployment,
  type ModuleHealthRecord,
  type ModuleRelease,
  type ModuleRecord,
  serialise,
  type StoredCheck,
} from '@platform/core/modules/record'
import { manifestFor } from '../../support/module-manifest.ts'

/** Modules as their installation leaves them, without any registry or runtime. */

/** An id that no other test of the file has: modules are the whole platform's. */
export const newModuleId = (): string => `m-${randomUUID().slice(0, 8)}`.replace(/-(?=\d)/, '-a')

const digest = `sha256:${'0'.repeat(64)}`

export function releaseFor(
  id: string,
  {
    version = '1.0.0',
    spec = {},
    ...more
  }: { version?: string; spec?: Partial<ModuleManifest['spec']> } & Partial<ModuleRelease> = {},
): ModuleRelease {
  const { metadata, ...manifest } = manifestFor(id, spec)
  return {
    moduleId: id,
    version,
    repository: `registry.example.com/modules/${id}`,
    digest,
    manifest: { ...manifest, metadata: { ...metadata, version } },
    isVerified: true,
    verifiedBy: 'tests',
    ...more,
  }
}

export const deploymentOf = ({ moduleId, version }: ModuleRelease): Deployment => ({
  runtime: 'process',
  isolation: 'a process of its own',
  id: `${moduleId}-00000000`,
  moduleId,
  version,
  digest,
  handle: '/run/x',
})

/** A module that serves, or one in another state. */
export async function putModule(release: ModuleRelease, row: Partial<ModuleRecord> = {}): Promise<void> {
  const { moduleId } = release
  const { state = 'Running', deployment = deploymentOf(release), error, ...more } = row
  const isThere = state !== 'Failed' && state !== 'Installing'
  await transact([
    replace(keys.module(moduleId), {
      id: moduleId,
      organisationId: newId('org'),
      state,
      release: serialise(release),
      ...(isThere && { deployment: serialise(deployment) }),
      ...(error && { error: serialise(error) }),
      ...(state !== 'Installing' && { installedAtMs: now() }),
      updatedAtMs: now(),
      ...more,
    }),
    reserveRoutesWrite(await readRoutes(), moduleId, {
      apiBasePath: release.manifest.spec.apiBasePath,
      subscriptions: [],
      ...(isThere && { deployment }),
    }),
  ])
}

/** What a probe of a module has found. */
export const putHealth = async (moduleId: string, health: ModuleHealthRecord['health'], checks: StoredCheck[] = []) => {
  await update(keys.moduleHealth(moduleId), { set: { health, checks: serialise(checks), missed: 0 } })
}

export const storedCheck = (name: string, more: Partial<StoredCheck> = {}): StoredCheck => ({
  name,
  status: 'Healthy',
  tags: ['informational'],
  description: 'Fine.',
  durationMs: 1,
  checkedAtMs: now(),
  ...more,
})

/** A release as a scan finds it. */
export const catalogRelease = (
  moduleId: string,
  version: string,
  more: Partial<CatalogRelease> = {},
): CatalogRelease => ({
  moduleId,
  version,
  digest,
  name: moduleId,
  description: 'A module under test.',
  isVerified: true,
  verifiedBy: 'tests',
  ...more,
})

/** What a scan has found in some repositories, in the order of the sources; and nothing else. */
export const putCatalog = async (repositories: Record<string, CatalogRelease[]>, problems: string[] = []) =>
  storeCatalog(
    {
      repositories: Object.entries(repositories).map(([reference, releases], place) => ({
        reference,
        place,
        releases,
      })),
      scan: { scannedAtMs: now(), problems },
    },
    await readCatalog(),
  )
