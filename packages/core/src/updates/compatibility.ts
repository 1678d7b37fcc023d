import type { ErrorCode } from '@platform/contract/errors'
import prerelease from 'semver/functions/prerelease.js'
import { isNewer } from '../modules/catalog/select.ts'
import { config } from '../config.ts'
import { infrastructureRevision } from './infrastructure.ts'
import type { Release } from './release-document.ts'

export interface Incompatibility {
  code: Extract<ErrorCode, 'version_not_available' | 'infrastructure_update_required'>
  reason: string
}

/** Prereleases can be deployed but not applied. */
export const isStable = (version: string): boolean => prerelease(version) === null

export function findIncompatibility({ document }: Release, currentVersion: string): Incompatibility | undefined {
  const { version, minFrom, infrastructure } = document
  if (!isStable(version)) return unavailable('It is a prerelease; only stable releases are applied.')
  if (!isNewer(version, currentVersion)) return unavailable(`It is not newer than ${currentVersion}, which is active.`)
  if (minFrom !== undefined && isNewer(minFrom, currentVersion)) {
    return unavailable(
      `It requires version ${minFrom} or later, and ${currentVersion} is active. Update to that version first.`,
    )
  }
  if (infrastructure === infrastructureRevision()) return undefined
  const reason = `It requires other infrastructure than ${currentVersion} has. Get its sources and run: ${commands[config.PLAT_UPDATE_TARGET]}`
  return { code: 'infrastructure_update_required', reason: reason.slice(0, 500) }
}

const commands = {
  'local-supervisor': 'npm ci && npm start',
  'lambda-alias': 'npm ci && npm run deploy -- --stage NAME',
} as const

const unavailable = (reason: string): Incompatibility => ({
  code: 'version_not_available',
  reason: reason.slice(0, 500),
})
