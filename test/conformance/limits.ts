import assert from 'node:assert/strict'
import { type Answer, answered } from './support/answer.ts'
import { batchPath, jobFor } from './support/batch.ts'
import type { Journeys } from './support/platform.ts'

/** More failures than any platform lets pass within a minute. */
const manyFailures = 200

const standingOf = ({ headers }: Answer): number[] =>
  ['limit', 'remaining', 'reset'].map((name) => Number(headers.get(`ratelimit-${name}`) ?? Number.NaN))

export const limits: Journeys = {
  'whatever a signed-in caller asks, the answer tells where it stands with the rate limit': async (platform) => {
    const { client } = await platform.newPerson('Viewer')
    for (const [answer, status] of [
      [await client.get('/api/v1/clusters'), 200],
      [await client.get('/api/v1/clusters/nothing'), 404],
      [await client.get('/api/v1/clusters?page=0'), 400],
      [await client.patch('/api/v1/notifications', {}), 204],
    ] as const) {
      answered(answer, status)
      const [limit = 0, remaining = -1, reset = -1] = standingOf(answer)
      assert.ok(
        limit > 0 && remaining >= 0 && remaining < limit && reset >= 0,
        `${answer.path}: ${standingOf(answer).join()}`,
      )
    }
  },

  'one caller’s limit is not another’s': async (platform) => {
    const [busy, idle] = [await platform.newPerson('Viewer'), await platform.newPerson('Viewer')]
    await Promise.all(Array.from({ length: 20 }, () => busy.client.get('/api/v1/auth/me')))
    const [limit = 0, remaining] = standingOf(await idle.client.get('/api/v1/auth/me'))
    // The first call of somebody takes one.
    assert.equal(remaining, limit - 1)
  },

  'who fails to sign in too often has to wait, even with the right password, and is told how long; others need not':
    async (platform) => {
      const { username, password } = await platform.newPerson('Viewer')
      const attempt = (secret: string) =>
        platform.anonymous.attempt('POST', '/api/v1/auth/login', { json: { username, password: secret } })
      let refusal: Answer | undefined
      for (let failures = 0; refusal === undefined && failures < manyFailures; failures++) {
        const wrong = await attempt(`${password}.`)
        if (wrong.status !== 429) answered(wrong, 401, 'invalid_credentials')
        // A platform that is busy with passwords answers so as well: then the right one helps.
        const right = wrong.status === 429 ? await attempt(password) : undefined
        if (right?.status === 429) refusal = right
      }
      assert.ok(refusal !== undefined, `${manyFailures} failures in a row were not limited`)
      answered(refusal, 429, 'rate_limited')
      const waitSeconds = Number(refusal.headers.get('retry-after'))
      assert.ok(waitSeconds >= 1 && waitSeconds <= 60, `${waitSeconds}`)
      await platform.signIn()
    },

  'a body above 4 MiB is refused as too large, and nothing is done': async (platform) => {
    const admin = await platform.admin
    const { id: clusterId } = await platform.newCluster()
    const jobs = Array.from({ length: 17 }, () => jobFor(clusterId, '#'.padEnd(260_000, 'x')))
    assert.ok(JSON.stringify({ jobs }).length > 4 * 1024 * 1024)
    answered(await admin.post(batchPath, { jobs }), 413, 'payload_too_large')
    answered(await admin.delete(`/api/v1/clusters/${clusterId}`), 204)
  },
}
