import { expect } from 'vitest'
import { expectStatus } from './support/answer.ts'
import { test } from './support/test.ts'

test('returns the rate limit state with every response to a signed-in caller', async ({ platform }) => {
  const { client } = await platform.newUser('Viewer')
  for (const [response, status] of [
    [await client.get('/api/v1/clusters'), 200],
    [await client.get('/api/v1/clusters/nothing'), 404],
    [await client.get('/api/v1/clusters?page=0'), 400],
    [await client.patch('/api/v1/notifications', {}), 204],
  ] as const) {
    expectStatus(response, status)
    const [limit = -1, remaining = -1, reset = -1] = ['limit', 'remaining', 'reset'].map((name) =>
      Number(response.headers.get(`ratelimit-${name}`) ?? Number.NaN),
    )
    expect(remaining, response.path).toBeGreaterThanOrEqual(0)
    expect(remaining, response.path).toBeLessThan(limit)
    expect(reset, response.path).toBeGreaterThanOrEqual(0)
  }
})
