import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import type { Journeys, Platform } from './support/platform.ts'
import { until } from './support/until.ts'

const paths = {
  configuration: '/api/v1/portal/configuration',
  summary: '/api/v1/portal/summary',
  history: '/api/v1/portal/history',
  navigation: '/api/v1/portal/navigation',
}

const tenant = async (platform: Platform) => (await platform.tenant).client

const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((total, count) => total + count, 0)

export const portal: Journeys = {
  'where the portal begins anybody may ask, and learns no secret': async (platform) => {
    const body = answered(await platform.anonymous.get(paths.configuration), 200)
    const known = new Set(['platformName', 'publicUrl', 'setupComplete', 'timezone', 'version'])
    assert.ok(Object.keys(body).every((name) => known.has(name)))
    assert.equal(body.setupComplete, true)
    assert.match(body.version, /^\d+\.\d+\.\d+/)
  },

  'one answer tells the totals that the lists tell': async (platform) => {
    const client = await tenant(platform)
    const totalOf = async (noun: string) => answered(await client.get(`/api/v1/${noun}?pageSize=1`), 200).totalCount
    // Totals of jobs follow when the books are closed.
    await until('totals that agree', async () => {
      const [clusters, jobs] = [await totalOf('clusters'), await totalOf('jobs')]
      const summary = answered(await client.get(paths.summary), 200)
      assert.equal(sum(summary.clusters.byStatus), summary.clusters.total)
      assert.equal(summary.update, undefined)
      return summary.clusters.total === clusters && summary.jobs.total === jobs ? summary : undefined
    })
  },

  'an answer without news is not sent again': async (platform) => {
    const { client } = await platform.newPerson('Viewer')
    for (const path of [paths.summary, paths.history, paths.navigation]) {
      await until(`the same answer of ${path} twice`, async () => {
        const etag = (await client.get(path)).headers.get('etag') ?? ''
        assert.match(etag, /^"[^"]+"$/)
        const { status, text } = await client.get(path, { 'if-none-match': etag })
        return status === 304 && text === '' ? true : undefined
      })
    }
  },

  'a program sees what its token may read': async (platform) => {
    const { client } = await platform.newPerson('Operator')
    const body = { name: 'portal', permissions: ['jobs:read'] }
    const { token } = answered(await client.post('/api/v1/users/me/tokens', body), 201)
    const program = platform.anonymous.withToken(token)
    const summary = answered(await program.get(paths.summary), 200)
    assert.deepEqual([summary.clusters, summary.modules], [undefined, undefined])
    assert.ok(summary.jobs.total >= 0)
    const { points } = answered(await program.get(`${paths.history}?hours=1`), 200)
    assert.deepEqual(Object.keys(points.at(-1)).toSorted(), ['at', 'jobs'])
    const used = await until('the use of the token', async () => {
      const { items } = answered(await client.get('/api/v1/users/me/tokens'), 200)
      return items[0].lastUsedAt ?? undefined
    })
    assert.ok(Date.parse(used) > 0)
  },

  'what was is told in steps, up to now, for up to 30 days': async (platform) => {
    const client = await tenant(platform)
    for (const [hours, stepMinutes] of [
      [1, 15],
      [24, 15],
      [720, 240],
    ]) {
      const body = answered(await client.get(`${paths.history}?hours=${hours}`), 200)
      assert.equal(body.stepMinutes, stepMinutes)
      assert.ok(body.points.length <= 200)
      const { at, clusters, jobs } = body.points.at(-1)
      assert.ok(Date.parse(at) <= Date.now() + 60_000)
      assert.ok(sum(clusters.byStatus) >= 0 && jobs.submitted >= 0)
    }
    for (const hours of ['0', '721', 'x']) {
      const refused = await client.get(`${paths.history}?hours=${hours}`)
      assert.deepEqual(refusedFields(refused), ['query /hours'])
    }
  },
}
