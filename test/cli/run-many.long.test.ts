import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { seedFleet } from '../support/portal/fleet.ts'
import { startProxy } from './support/proxy.ts'
import { logIn, startEnvironment } from './support/environment.ts'

test('--all names clusters that are removed while the list is read, and runs on the others', async () => {
  await using environment = await startEnvironment()
  const api = await environment.platform.api()
  await seedFleet(environment.platform, api, 150)
  await using proxy = await startProxy(environment.platform.url)
  const plat = environment.plat.with({ PLAT_SERVER: proxy.url })
  await logIn(plat)
  const { promise: holdUntil, resolve: release } = Promise.withResolvers<void>()
  proxy.inject('GET /api/v1/clusters?', { holdUntil })
  const runningPlat = plat.start(['run', '--all', '--detach', '--', 'true'])
  await expect.poll(() => proxy.requests.join('\n')).toContain('GET /api/v1/clusters?')
  const admin = await api.admin
  const { items } = expectStatus(await admin.get('/api/v1/clusters?pageSize=2'), 200)
  for (const { id } of items) expectStatus(await admin.delete(`/api/v1/clusters/${id}`), 204)
  release()
  const { exitCode, out, err } = await runningPlat.ended
  expect([exitCode, out]).toEqual([0, expect.stringMatching(/^batch_\w+\n$/)])
  for (const { id, name } of items) expect(err).toContain(`${name} (${id}) was removed and is skipped.`)
  expect(await plat.json(['batch', 'get', out.trim()])).toMatchObject({ submittedCount: 148 })
})

test('Ctrl-C between two batches exits with 130 and the number of remaining clusters', async () => {
  await using environment = await startEnvironment()
  await seedFleet(environment.platform, await environment.platform.api(), 501)
  await using proxy = await startProxy(environment.platform.url)
  const plat = environment.plat.with({ PLAT_SERVER: proxy.url })
  await logIn(plat)
  const { promise: holdUntil, resolve: release } = Promise.withResolvers<void>()
  proxy.inject('POST /api/v1/jobs/batch', { holdUntil })

  const runningPlat = plat.start(['run', '--all', '--detach', '--', 'true'])
  await expect.poll(() => proxy.requests).toContain('POST /api/v1/jobs/batch')
  runningPlat.interrupt()
  await runningPlat.says(/Cancelling/)
  release()
  const { exitCode, out, err } = await runningPlat.ended
  expect(exitCode).toBe(130)
  expect(out).toMatch(/^batch_\w+\n$/)
  expect(err).toContain('500 jobs accepted, 1 not started.')
  await plat.run(['batch', 'wait', out.trim()])
  const { counts } = await plat.json(['batch', 'get', out.trim()])
  expect(counts).toMatchObject({ cancelled: 500 })
})

test('--max-errors does not count cancelled jobs', async () => {
  await using environment = await startEnvironment()
  await seedFleet(environment.platform, await environment.platform.api(), 501)
  const runningPlat = environment.plat.start(['run', '--all', '--group', '--max-errors', '0', '--', 'true'])
  for (const text of ['500 jobs', '1 job']) {
    await runningPlat.says(new RegExp(`accepted: ${text}\\.`))
    const { items } = await environment.call('GET', '/jobs/batch?pageSize=1')
    await environment.call('POST', `/jobs/batch/${items[0].id}/cancel`)
  }
  const { err } = await runningPlat.ended
  expect(err).toContain('501 clusters: 0 completed, 501 not completed.')
})
