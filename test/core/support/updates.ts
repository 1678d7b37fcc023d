import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { create, get, remove, replace } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { findOperation } from '@platform/core/operations/operation'
import type { OperationRecord } from '@platform/core/operations/record'
import { type InstalledRelease, parseUpdateState, type UpdateState } from '@platform/core/updates/record'
import { vi } from 'vitest'
import { newCaller } from '../../support/fixtures.ts'
import { receiveMessages } from './messages.ts'
import { claimed } from './operations.ts'

/** Creates a platform administrator whose organisation is stored as the platform organisation. */
export async function newPlatformAdmin(): Promise<Caller> {
  const caller = await newCaller(undefined, 'PlatformAdmin')
  const id = caller.organisationId
  await transact([create(keys.organisation(id), { id, name: id, isPlatform: true, createdAtMs: now() })])
  return caller
}

export const readUpdateState = async (): Promise<UpdateState> => parseUpdateState(await get(keys.updateState()))

export async function clearUpdates(): Promise<void> {
  await transact([remove(keys.updateState()), remove(keys.updateCheck())])
  await receiveMessages(config.PLAT_QUEUE_UPDATES)
}

export async function storeUpdateState(current: InstalledRelease, previous?: InstalledRelease): Promise<void> {
  const releases = { current: JSON.stringify(current), ...(previous && { previous: JSON.stringify(previous) }) }
  await transact([replace(keys.updateState(), { ...releases, revision: 7 })])
}

export async function claimUpdateOperation({ organisationId }: Caller, jobId: string): Promise<OperationRecord> {
  const operation = await findOperation({ organisationId, jobId })
  if (operation === undefined) throw new Error('The operation does not exist.')
  return claimed(operation)
}

/** Imports the update code as if it were released with this version. */
export async function loadUpdatesAt(version: string) {
  vi.stubGlobal('releasedVersion', version)
  vi.resetModules()
  const { update } = await import('@platform/core/updates/request')
  const { check, checkRegularly } = await import('@platform/core/updates/check')
  vi.unstubAllGlobals()
  return { update, check, checkRegularly }
}
