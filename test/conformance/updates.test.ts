import { expect } from 'vitest'
import { type ApiResponse, expectStatus } from './support/answer.ts'
import type { Client } from './support/client.ts'
import { test } from './support/test.ts'

const checkPath = '/api/v1/platform/updates/check'
const applyPath = '/api/v1/platform/updates/apply'

const requestUpdate = (client: Client, body: object): Promise<ApiResponse> => client.put(applyPath, body)

const isBusy = ({ body }: ApiResponse): boolean => body?.error === 'update_in_progress'
const isUnreachable = ({ body }: ApiResponse): boolean => body?.error === 'release_source_unreachable'

test('returns the current version and a newer one only if there is one', async ({ admin, skip }) => {
  const response = await admin.get(checkPath)
  if (isUnreachable(response)) return skip('the platform cannot reach its release source')
  const { currentVersion, latestVersion, updateAvailable, checkedAt, ...found } = expectStatus(response, 200)
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
    const response = await requestUpdate(client, { action: 'apply', targetVersion })
    if (isBusy(response)) return skip('the platform is being updated')
    if (targetVersion !== '999.0.0' || !isUnreachable(response)) expectStatus(response, 422, 'version_not_available')
  }
})

test('rolls back to the previous version only', async ({ admin: client, skip }) => {
  const check = await client.get(checkPath)
  if (isUnreachable(check)) return skip('the platform cannot reach its release source')
  const { previousVersion } = expectStatus(check, 200)
  const response = await requestUpdate(client, { action: 'rollback', targetVersion: '999.0.0' })
  if (isBusy(response)) return skip('the platform is being updated')
  if (previousVersion === undefined) expectStatus(response, 409, 'no_previous_version')
  else expectStatus(response, 422, 'version_not_available')
})
