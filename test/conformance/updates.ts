import assert from 'node:assert/strict'
import { type Answer, answered, refusedFields } from './support/answer.ts'
import type { Client } from './support/client.ts'
import type { Journeys } from './support/platform.ts'

const checkPath = '/api/v1/platform/updates/check'
const applyPath = '/api/v1/platform/updates/apply'

/** Asks for an update. Nothing here asks for one that could be done. */
const apply = (client: Client, body: object): Promise<Answer> => client.put(applyPath, body)

/** A platform that is being updated refuses all there is. */
const isBusy = ({ body }: Answer): boolean => body?.error === 'update_in_progress'
const isAway = ({ body }: Answer): boolean => body?.error === 'release_source_unreachable'

export const updates: Journeys = {
  'a check tells which version serves, and of a newer one only where there is one': async ({ admin }, report) => {
    const answer = await (await admin).get(checkPath)
    if (isAway(answer)) return report.skip('the platform reaches no releases')
    const { currentVersion, latestVersion, updateAvailable, checkedAt, ...found } = answered(answer, 200)
    assert.equal(updateAvailable, latestVersion !== currentVersion)
    assert.ok(updateAvailable || found.releaseNotesUrl === undefined)
    assert.ok(Date.parse(checkedAt) <= Date.now() + 60_000, checkedAt)
    for (const { version, reason } of found.refused) {
      assert.notEqual(version, latestVersion)
      assert.match(reason, /\.$/)
    }
  },

  'a version that does not exist, or is none, is not available': async ({ admin }, report) => {
    const client = await admin
    for (const targetVersion of ['999.0.0', 'latest', '1.0', '../x', '']) {
      const answer = await apply(client, { action: 'apply', targetVersion })
      if (isBusy(answer)) return report.skip('the platform is being updated')
      if (targetVersion !== '999.0.0' || !isAway(answer)) answered(answer, 422, 'version_not_available')
    }
  },

  'the version that serves is no update, and a prerelease neither': async ({ admin }, report) => {
    const client = await admin
    const check = await client.get(checkPath)
    if (isAway(check)) return report.skip('the platform reaches no releases')
    for (const targetVersion of [answered(check, 200).currentVersion, '0.0.0-0', '999.0.0-rc.1']) {
      const answer = await apply(client, { action: 'apply', targetVersion })
      if (isBusy(answer) || isAway(answer)) return report.skip('the platform is being updated, or reaches no releases')
      answered(answer, 422, 'version_not_available')
    }
  },

  'a rollback leads to the previous version and nowhere else': async ({ admin }, report) => {
    const client = await admin
    const check = await client.get(checkPath)
    if (isAway(check)) return report.skip('the platform reaches no releases')
    const { previousVersion } = answered(check, 200)
    const answer = await apply(client, { action: 'rollback', targetVersion: '999.0.0' })
    if (isBusy(answer)) return report.skip('the platform is being updated')
    if (previousVersion === undefined) answered(answer, 409, 'no_previous_version')
    else answered(answer, 422, 'version_not_available')
  },

  'fields that are missing or wrong are named': async ({ admin }) => {
    const wrong: [object, string][] = [
      [{}, 'body /action'],
      [{ action: 'update' }, 'body /action'],
      [{ action: 'apply' }, 'body /targetVersion'],
      [{ action: 'apply', targetVersion: 7 }, 'body /targetVersion'],
      [{ action: 'apply', targetVersion: '9'.repeat(129) }, 'body /targetVersion'],
      [{ action: 'rollback', targetVersion: '999.0.0', force: 'yes' }, 'body /force'],
    ]
    for (const [body, field] of wrong) assert.deepEqual(refusedFields(await apply(await admin, body)), [field])
  },

  'updates are for administrators of the platform alone': async (platform) => {
    const { client } = await platform.tenant
    assert.equal(answered(await client.get(checkPath), 403, 'forbidden').requiredPermission, 'platform:admin')
    answered(await apply(client, { action: 'apply', targetVersion: '999.0.0' }), 403, 'forbidden')
    answered(await apply(platform.anonymous, { action: 'rollback' }), 401, 'unauthenticated')
  },
}
