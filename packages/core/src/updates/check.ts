import { type UpdateCheck } from '@platform/contract/update'
import { type Caller, system } from '../caller.ts'
import { isNewer } from '../modules/catalog/select.ts'
import { commit } from '../outbox/commit.ts'
import { iso, now } from '../clock.ts'
import { config } from '../config.ts'
import { unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { get, getConsistent, replace } from '../db/table.ts'
import { PlatformError } from '../error.ts'
import { log } from '../log.ts'
import { platformOrganisationId } from '../accounts/organisation.ts'
import { newestRelease } from './release-feed.ts'
import { type CheckRecord, type CheckResult, newerReleaseIn, parseCheck } from './check-result.ts'
import { runningUpdate } from './request.ts'
import { parseUpdateState, previousRelease } from './record.ts'
import { version } from '../lib/version.ts'

/** Checks for newer releases, on demand and by schedule. The result is stored as a fallback. */

/** Announced versions that are remembered: more than are ever withdrawn. */
const toldLimit = 50

/**
 * Checks for a newer release. If the repository is unreachable, returns the last result or throws
 * `release_source_unreachable`. Two calls, three during an update, those to the registry, and a message for a new
 * version.
 */
export async function check({ organisationId }: Caller): Promise<UpdateCheck> {
  const [stateItem, checkItem] = await getConsistent([keys.updateState(), keys.updateCheck()])
  const state = parseUpdateState(stateItem)
  const found = await look(organisationId, parseCheck(checkItem))
  const { refused, checkedAtMs } = found
  const [jobId, previous] = [await runningUpdate(organisationId, state), previousRelease(state)]
  const newer = newerReleaseIn(found)
  return {
    currentVersion: version,
    latestVersion: newer?.version ?? version,
    updateAvailable: newer !== undefined,
    ...(newer?.releaseNotesUrl !== undefined && { releaseNotesUrl: newer.releaseNotesUrl }),
    checkedAt: iso(checkedAtMs),
    ...(previous && { previousVersion: previous.version }),
    ...(jobId !== undefined && { jobId }),
    refused: refused.filter((release) => isNewer(release.version, version)),
  }
}

/**
 * The scheduled check, which announces a new version by an event. Ignores an unreachable repository. Three calls, one
 * before setup is complete, none if updates are disabled; those to the registry, and a message as `check`.
 */
export async function checkRegularly(): Promise<void> {
  if (config.PLAT_RELEASE_SOURCE === '') return
  const organisationId = await platformOrganisationId()
  if (organisationId === undefined) return
  try {
    await look(organisationId, parseCheck(await get(keys.updateCheck())))
  } catch (error) {
    if (!isUnreachable(error)) throw error
    log('warn', 'Failed to read releases', { reason: error.message })
  }
}

const isUnreachable = (error: unknown): error is PlatformError =>
  error instanceof PlatformError && error.code === 'release_source_unreachable'

async function look(organisationId: string, before: CheckRecord | undefined): Promise<CheckResult> {
  const source = config.PLAT_RELEASE_SOURCE
  if (source === '') return { refused: [], checkedAtMs: now() }
  try {
    const { release, refused } = await newestRelease(version)
    const found = { latest: release && latestOf(release.document), refused, checkedAtMs: now() }
    await keep(organisationId, { ...found, source }, before)
    return found
  } catch (error) {
    // Results of another repository do not count.
    if (!isUnreachable(error) || before?.source !== source) throw error
    log('warn', 'Failed to read releases; serving the last result', { reason: error.message })
    return before
  }
}

const latestOf = ({ version: latest, releaseNotesUrl }: NonNullable<CheckResult['latest']>) => ({
  version: latest,
  ...(releaseNotesUrl !== undefined && { releaseNotesUrl }),
})

/**
 * Stores a result and announces a new version once, also among concurrent checks: a slower one is dropped, and the next
 * check announces what it found. One call, and a message for an announcement.
 */
async function keep(
  organisationId: string,
  { latest, refused, checkedAtMs, source }: CheckResult & { source: string },
  before: CheckRecord | undefined,
): Promise<void> {
  const told = before?.told ?? []
  const isNew = latest !== undefined && !told.includes(latest.version)
  const row = {
    source,
    ...(latest && { latest: JSON.stringify(latest) }),
    refused: JSON.stringify(refused),
    checkedAtMs,
    told: isNew ? [latest.version, ...told].slice(0, toldLimit) : told,
    revision: (before?.revision ?? 0) + 1,
  }
  await commit(system(organisationId), {
    writes: [replace(keys.updateCheck(), row, { revision: unchanged(before?.revision) })],
    ...(isNew && {
      events: [{ name: 'update.available', subject: latest.version, data: { ...latest, currentVersion: version } }],
    }),
  })
}
