import { type ErrorCode } from '@platform/contract/errors'
import prerelease from 'semver/functions/prerelease.js'
import { isNewer } from '../modules/catalog/select.ts'
import { config } from '../config.ts'
import { infrastructureRevision } from './infrastructure.ts'
import { type Release } from './release-document.ts'

export interface Incompatibility {
  code: Extract<ErrorCode, 'version_not_available' | 'infrastructure_update_required'>
  reason: string
}

/** Prereleases can be deployed but not applied. */
export const isStable = (version: string): boolean => prerelease(version) === null

export function findIncompatibility({ document }: Release, current: string): Incompatibility | undefined {
  const { version, minFrom, infrastructure } = document
  if (!isStable(version)) return notAvailable('It is a prerelease; only stable releases are applied.')
  if (!isNewer(version, current)) return notAvailable(`It is not newer than ${current}, which is active.`)
  if (minFrom !== undefined && isNewer(minFrom, current)) {
    return notAvailable(
      `It requires version ${minFrom} or later, and ${current} is active. Update to that version first.`,
    )
  }
  if (infrastructure === infrastructureRevision()) return undefined
  const reason = `It requires other infrastructure than ${current} has. Get its sources and run: ${commands[config.PLAT_UPDATE_TARGET]}`
  return { code: 'infrastructure_update_required', reason: reason.slice(0, 500) }
}

const commands = {
  'local-supervisor': 'npm ci && npm start',
  'lambda-alias': 'npm ci && npm run deploy -- --stage NAME',
} as const

const notAvailable = (reason: string): Incompatibility => ({
  code: 'version_not_available',
  reason: reason.slice(0, 500),
})
