import { randomUUID } from 'node:crypto'
import type { ModuleManifest } from '@platform/contract/manifest'
import { storeCatalog, readCatalog } from '@platform/core/modules/catalog/catalog'
import type { CatalogRelease } from '@platform/core/modules/catalog/record'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { replace, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { reserveRoutesWrite, readRoutes } from '@platform/core/modules/routes'
import type { Deployment } from '@platform/core/modules/deployment'
import {
  type ModuleHealthRecord,
  type ModuleRelease,
  type ModuleRecord,
  serialise,
  type StoredCheck,
} from '@platform/core/modules/record'
import { manifestFor } from '../../support/module-manifest.ts'

/** Records of installed modules, without a registry or runtime. */

/** Returns a unique id, because modules belong to the whole platform. */
export const newModuleId = (): string => `m-${randomUUID().slice(0, 8)}`.replace(/-(?=\d)/, '-a')

const digest = `sha256:${'0'.repeat(64)}`

export function releaseFor(
  id: string,
  {
    version = '1.0.0',
    spec = {},
    ...overrides
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
    ...overrides,
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

/** Stores a module, by default a running one. */
export async function putModule(release: ModuleRelease, record: Partial<ModuleRecord> = {}): Promise<void> {
  const { moduleId } = release
  const { state = 'Running', deployment = deploymentOf(release), error, ...fields } = record
  const isDeployed = state !== 'Failed' && state !== 'Installing'
  await transact([
    replace(keys.module(moduleId), {
      id: moduleId,
      organisationId: newId('org'),
      state,
      release: serialise(release),
      ...(isDeployed && { deployment: serialise(deployment) }),
      ...(error && { error: serialise(error) }),
      ...(state !== 'Installing' && { installedAtMs: now() }),
      updatedAtMs: now(),
      ...fields,
    }),
    reserveRoutesWrite(await readRoutes(), moduleId, {
      apiBasePath: release.manifest.spec.apiBasePath,
      subscriptions: [],
      ...(isDeployed && { deployment }),
    }),
  ])
}

export const putHealth = async (moduleId: string, health: ModuleHealthRecord['health'], checks: StoredCheck[] = []) => {
  await update(keys.moduleHealth(moduleId), { set: { health, checks: serialise(checks), missed: 0 } })
}

export const storedCheck = (name: string, overrides: Partial<StoredCheck> = {}): StoredCheck => ({
  name,
  status: 'Healthy',
  tags: ['informational'],
  description: 'Fine.',
  durationMs: 1,
  checkedAtMs: now(),
  ...overrides,
})

export const catalogRelease = (
  moduleId: string,
  version: string,
  overrides: Partial<CatalogRelease> = {},
): CatalogRelease => ({
  moduleId,
  version,
  digest,
  name: moduleId,
  description: 'A module under test.',
  events: [],
  isVerified: true,
  verifiedBy: 'tests',
  ...overrides,
})

export async function putCatalog(repositories: Record<string, CatalogRelease[]>, problems: string[] = []) {
  const scannedSources = Object.entries(repositories).map(([reference, releases], sourceIndex) => ({
    reference,
    sourceIndex,
    releases,
  }))
  await storeCatalog({ repositories: scannedSources, scan: { scannedAtMs: now(), problems } }, await readCatalog())
}
