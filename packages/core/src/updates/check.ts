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
import { runningUpdate } from './lock.ts'
import { parseUpdateState } from './record.ts'
import { previousRelease } from './active-release.ts'
import { version } from '../lib/version.ts'

/** Looking for newer releases (D50), on demand and by the clock. What is found is kept for when it cannot be found again. */

/** Versions that are not told of again: more than anybody withdraws. */
const toldLimit = 50

/**
 * Looks for a newer release. Where the releases cannot be read the last result is answered, as old as it is; without one,
 * throws `release_source_unreachable`. Two calls, three during an update, those to the registry, and a message where a version
 * is seen for the first time.
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
 * Looks for a newer release by the clock, for whom an event tells of it. Releases that cannot be read now can be the next
 * time. Three calls, one before setup is complete, none where updates are off; those to the registry, and a message as `check`.
 */
export async function checkRegularly(): Promise<void> {
  if (config.PLAT_RELEASE_SOURCE === '') return
  const organisationId = await platformOrganisationId()
  if (organisationId === undefined) return
  try {
    await look(organisationId, parseCheck(await get(keys.updateCheck())))
  } catch (error) {
    if (!isUnreachable(error)) throw error
    log('warn', 'The releases could not be read', { reason: error.message })
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
    // What another repository had says nothing of this one.
    if (!isUnreachable(error) || before?.source !== source) throw error
    log('warn', 'The releases could not be read; what was found last is told', { reason: error.message })
    return before
  }
}

const latestOf = ({ version: latest, releaseNotesUrl }: NonNullable<CheckResult['latest']>) => ({
  version: latest,
  ...(releaseNotesUrl !== undefined && { releaseNotesUrl }),
})

/**
 * Stores what was found, and tells of a version that was not told of before: once, whoever looks at the same time. Whoever was
 * faster has stored as much, and the next look tells what that one did not see. One call, and a message where it tells.
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
    steps: [replace(keys.updateCheck(), row, { revision: unchanged(before?.revision) })],
    ...(isNew && {
      events: [{ name: 'update.available', subject: latest.version, data: { ...latest, currentVersion: version } }],
    }),
  })
}
