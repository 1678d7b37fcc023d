import { type ErrorCode } from '@platform/contract/errors'
import prerelease from 'semver/functions/prerelease.js'
import { isNewer } from '../modules/catalog/select.ts'
import { config } from '../config.ts'
import { infrastructureRevision } from './infrastructure.ts'
import { type Release } from './release-document.ts'

/** Why a release that is genuine cannot be applied to what serves now. */
export interface Incompatibility {
  code: Extract<ErrorCode, 'version_not_available' | 'infrastructure_update_required'>
  /** A sentence for people. */
  reason: string
}

/** Prereleases are for trying out, not for a platform that people work with: they are deployed, never applied. */
export const isStable = (version: string): boolean => prerelease(version) === null

/** What is in the way of applying a release where `current` serves; undefined where nothing is. */
export function findIncompatibility({ document }: Release, current: string): Incompatibility | undefined {
  const { version, minFrom, infrastructure } = document
  if (!isStable(version)) return notAvailable('It is a prerelease; only stable releases are applied.')
  if (!isNewer(version, current)) return notAvailable(`It is not newer than ${current}, which serves.`)
  if (minFrom !== undefined && isNewer(minFrom, current)) {
    return notAvailable(
      `It can be applied from version ${minFrom} on, and ${current} serves. Update to that one first.`,
    )
  }
  if (infrastructure === infrastructureRevision()) return undefined
  const reason = `It needs other infrastructure than ${current} has. Get its sources and run: ${commands[config.PLAT_UPDATE_TARGET]}`
  return { code: 'infrastructure_update_required', reason: reason.slice(0, 500) }
}

/** What installs a release as a whole, its surroundings included. */
const commands = {
  'local-supervisor': 'npm ci && npm start',
  'lambda-alias': 'npm ci && npm run deploy -- --stage NAME',
} as const

const notAvailable = (reason: string): Incompatibility => ({
  code: 'version_not_available',
  reason: reason.slice(0, 500),
})
