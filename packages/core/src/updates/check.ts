import type { UpdateCheck } from '@platform/contract/update'
import { type Caller, system } from '../caller.ts'
import { isNewer } from '../modules/catalog/select.ts'
import { commit } from '../outbox/commit.ts'
import { iso, now } from '../clock.ts'
import { config } from '../config.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { get, getConsistent, replace } from '../db/table.ts'
import { PlatformError } from '../error.ts'
import { log } from '../log.ts'
import { platformOrganisationId } from '../accounts/platform-organisation.ts'
import { newestRelease } from './release-feed.ts'
import { type CheckRecord, type CheckResult, newerReleaseIn, parseCheck } from './check-result.ts'
import { runningUpdate } from './request.ts'
import { parseUpdateState, previousRelease } from './record.ts'
import { version } from '../lib/version.ts'

/** Announced versions are stored up to this number, so that a version is not announced again. */
const announcedLimit = 50

/** If the repository is unreachable, returns the last result or throws `release_source_unreachable`. */
export async function check({ organisationId }: Caller): Promise<UpdateCheck> {
  const [stateItem, checkItem] = await getConsistent([keys.updateState(), keys.updateCheck()])
  const state = parseUpdateState(stateItem)
  const result = await findNewest(organisationId, parseCheck(checkItem))
  const { refused, checkedAtMs } = result
  const [jobId, earlierRelease] = [await runningUpdate(organisationId, state), previousRelease(state)]
  const newestUpdate = newerReleaseIn(result)
  return {
    currentVersion: version,
    latestVersion: newestUpdate?.version ?? version,
    updateAvailable: newestUpdate !== undefined,
    ...(newestUpdate && { releaseNotesUrl: newestUpdate.releaseNotesUrl }),
    checkedAt: iso(checkedAtMs),
    ...(earlierRelease && { previousVersion: earlierRelease.version }),
    ...(jobId !== undefined && { jobId }),
    refused: refused.filter((release) => isNewer(release.version, version)),
  }
}

export async function checkRegularly(): Promise<void> {
  if (config.PLAT_RELEASE_SOURCE === '') return
  const organisationId = await platformOrganisationId()
  if (organisationId === undefined) return
  try {
    await findNewest(organisationId, parseCheck(await get(keys.updateCheck())))
  } catch (error) {
    if (!isUnreachable(error)) throw error
    log('warn', 'Failed to read releases', { reason: error.message })
  }
}

const isUnreachable = (error: unknown): error is PlatformError =>
  error instanceof PlatformError && error.code === 'release_source_unreachable'

async function findNewest(organisationId: string, before: CheckRecord | undefined): Promise<CheckResult> {
  const source = config.PLAT_RELEASE_SOURCE
  if (source === '') return { refused: [], checkedAtMs: now() }
  try {
    const { release, refused } = await newestRelease(version)
    const result = { latest: release && latestOf(release.document), refused, checkedAtMs: now() }
    await storeResult(organisationId, { ...result, source }, before)
    return result
  } catch (error) {
    if (!isUnreachable(error) || before?.source !== source) throw error
    log('warn', 'Failed to read releases; serving the last result', { reason: error.message })
    return before
  }
}

const latestOf = ({ version: latestVersion, releaseNotesUrl }: NonNullable<CheckResult['latest']>) => ({
  version: latestVersion,
  releaseNotesUrl,
})

/** Emits an event for a new version. Of concurrent checks, only the first one is stored. */
async function storeResult(
  organisationId: string,
  { latest, refused, checkedAtMs, source }: CheckResult & { source: string },
  before: CheckRecord | undefined,
): Promise<void> {
  const announcedVersions = before?.announced ?? []
  const isNew = latest !== undefined && !announcedVersions.includes(latest.version)
  const record = {
    source,
    ...(latest && { latest: JSON.stringify(latest) }),
    refused: JSON.stringify(refused),
    checkedAtMs,
    announced: (isNew ? [latest.version, ...announcedVersions] : announcedVersions).slice(0, announcedLimit),
    revision: (before?.revision ?? 0) + 1,
  }
  await commit(system(organisationId), {
    writes: [replace(keys.updateCheck(), record, { revision: unchangedCondition(before?.revision) })],
    ...(isNew && {
      events: [{ name: 'update.available', subject: latest.version, data: { ...latest, currentVersion: version } }],
    }),
  })
}
