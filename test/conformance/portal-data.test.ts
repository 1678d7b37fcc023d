import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus } from './support/answer.ts'
import type { Platform } from './support/platform.ts'
import { waitFor } from '../support/wait-for.ts'

const paths = {
  configuration: '/api/v1/portal/configuration',
  summary: '/api/v1/portal/summary',
  history: '/api/v1/portal/history',
  navigation: '/api/v1/portal/navigation',
}

const tenant = async (platform: Platform) => (await platform.tenant).client

const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((total, count) => total + count, 0)

test('returns the portal configuration without secrets to anyone', async ({ platform }) => {
  const body = expectStatus(await platform.anonymous.get(paths.configuration), 200)
  const fields = new Set(['isDemo', 'platformName', 'publicUrl', 'setupComplete', 'timezone', 'version'])
  expect(Object.keys(body).every((name) => fields.has(name))).toBe(true)
  expect(body.setupComplete).toBe(true)
  expect(body.version).toMatch(/^\d+\.\d+\.\d+/)
})

test('returns a summary with the same totals as the lists', async ({ platform }) => {
  const client = await tenant(platform)
  const totalOf = async (noun: string) => expectStatus(await client.get(`/api/v1/${noun}?pageSize=1`), 200).totalCount
  // Totals are updated asynchronously.
  await waitFor('totals that agree', async () => {
    const [clusters, jobs] = [await totalOf('clusters'), await totalOf('jobs')]
    const summary = expectStatus(await client.get(paths.summary), 200)
    expect(sum(summary.clusters.byStatus)).toBe(summary.clusters.total)
    expect(summary.update).toBe(undefined)
    return summary.clusters.total === clusters && summary.jobs.total === jobs ? summary : undefined
  })
})

test('returns 304 when nothing has changed', async ({ platform }) => {
  const { client } = await platform.newUser('Viewer')
  for (const path of [paths.summary, paths.history, paths.navigation]) {
    await waitFor(`two equal responses of ${path} twice`, async () => {
      const etag = (await client.get(path)).headers.get('etag') ?? ''
      expect(etag).toMatch(/^"[^"]+"$/)
      const { status, text } = await client.get(path, { 'if-none-match': etag })
      return status === 304 && text === '' ? true : undefined
    })
  }
})

test('limits the summary and history to the permissions of an API token', async ({ platform }) => {
  const { client } = await platform.newUser('Operator')
  const body = { name: 'portal', permissions: ['jobs:read'] }
  const { token } = expectStatus(await client.post('/api/v1/users/me/tokens', body), 201)
  const program = platform.anonymous.withToken(token)
  const summary = expectStatus(await program.get(paths.summary), 200)
  expect([summary.clusters, summary.modules]).toEqual([undefined, undefined])
  expect(summary.jobs.total).toBeGreaterThanOrEqual(0)
  const { points, previous } = expectStatus(await program.get(`${paths.history}?hours=1`), 200)
  expect(Object.keys(points.at(-1)).toSorted()).toEqual(['at', 'jobs'])
  expect(Object.keys(previous)).toEqual(['jobs'])
  const lastUsedAt = await waitFor('the use of the token', async () => {
    const { items } = expectStatus(await client.get('/api/v1/users/me/tokens'), 200)
    return items[0].lastUsedAt ?? undefined
  })
  expect(Date.parse(lastUsedAt)).toBeGreaterThan(0)
})
