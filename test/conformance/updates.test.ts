import { expect } from 'vitest'
import { test } from './support/test.ts'
import { type Answer, expectStatus, invalidFields } from './support/answer.ts'
import type { Client } from './support/client.ts'

const checkPath = '/api/v1/platform/updates/check'
const applyPath = '/api/v1/platform/updates/apply'

/** Requests an update that cannot be applied. */
const apply = (client: Client, body: object): Promise<Answer> => client.put(applyPath, body)

/** Errors during an update of the platform. */
const isBusy = ({ body }: Answer): boolean => body?.error === 'update_in_progress'
const isAway = ({ body }: Answer): boolean => body?.error === 'release_source_unreachable'

test('returns the current version and a newer one only if there is one', async ({ admin, skip }) => {
  const answer = await admin.get(checkPath)
  if (isAway(answer)) return skip('the platform reaches no releases')
  const { currentVersion, latestVersion, updateAvailable, checkedAt, ...found } = expectStatus(answer, 200)
  expect(updateAvailable).toBe(latestVersion !== currentVersion)
  expect(updateAvailable || found.releaseNotesUrl === undefined).toBe(true)
  expect(Date.parse(checkedAt), checkedAt).toBeLessThanOrEqual(Date.now() + 60_000)
  for (const { version, reason } of found.refused) {
    expect(version).not.toBe(latestVersion)
    expect(reason).toMatch(/\.$/)
  }
})

test('rejects unknown and malformed versions', async ({ admin: client, skip }) => {
  for (const targetVersion of ['999.0.0', 'latest', '1.0', '../x', '']) {
    const answer = await apply(client, { action: 'apply', targetVersion })
    if (isBusy(answer)) return skip('the platform is being updated')
    if (targetVersion !== '999.0.0' || !isAway(answer)) expectStatus(answer, 422, 'version_not_available')
  }
})

test('rejects the current version and prereleases', async ({ admin: client, skip }) => {
  const check = await client.get(checkPath)
  if (isAway(check)) return skip('the platform reaches no releases')
  for (const targetVersion of [expectStatus(check, 200).currentVersion, '0.0.0-0', '999.0.0-rc.1']) {
    const answer = await apply(client, { action: 'apply', targetVersion })
    if (isBusy(answer) || isAway(answer)) return skip('the platform is being updated, or reaches no releases')
    expectStatus(answer, 422, 'version_not_available')
  }
})

test('rolls back to the previous version only', async ({ admin: client, skip }) => {
  const check = await client.get(checkPath)
  if (isAway(check)) return skip('the platform reaches no releases')
  const { previousVersion } = expectStatus(check, 200)
  const answer = await apply(client, { action: 'rollback', targetVersion: '999.0.0' })
  if (isBusy(answer)) return skip('the platform is being updated')
  if (previousVersion === undefined) expectStatus(answer, 409, 'no_previous_version')
  else expectStatus(answer, 422, 'version_not_available')
})

test('names missing and invalid fields', async ({ admin }) => {
  const wrong: [object, string][] = [
    [{}, 'body /action'],
    [{ action: 'update' }, 'body /action'],
    [{ action: 'apply' }, 'body /targetVersion'],
    [{ action: 'apply', targetVersion: 7 }, 'body /targetVersion'],
    [{ action: 'apply', targetVersion: '9'.repeat(129) }, 'body /targetVersion'],
    [{ action: 'rollback', targetVersion: '999.0.0', force: 'yes' }, 'body /force'],
  ]
  for (const [body, field] of wrong) expect(invalidFields(await apply(admin, body))).toEqual([field])
})

test('permits updates to platform administrators only', async ({ platform }) => {
  const { client } = await platform.tenant
  expect(expectStatus(await client.get(checkPath), 403, 'forbidden').requiredPermission).toBe('platform:admin')
  expectStatus(await apply(client, { action: 'apply', targetVersion: '999.0.0' }), 403, 'forbidden')
  expectStatus(await apply(platform.anonymous, { action: 'rollback' }), 401, 'unauthenticated')
})
