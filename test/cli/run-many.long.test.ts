import { expect, test } from 'vitest'
import { seedFleet } from '../support/portal/fleet.ts'
import { startProxy } from './support/proxy.ts'
import { password, startWorkplace } from './support/workplace.ts'

test('Ctrl-C between two batches exits with 130 and the number of remaining clusters', async () => {
  await using workplace = await startWorkplace()
  await seedFleet(workplace.platform, await workplace.platform.api(), 501)
  await using proxy = await startProxy(workplace.platform.url)
  const plat = workplace.plat.with({ PLAT_SERVER: proxy.url })
  await plat.prints(['login', '--username', 'ada', '--password-stdin'], `${password}\n`)
  const { promise: holdUntil, resolve: release } = Promise.withResolvers<void>()
  proxy.spoil('POST /api/v1/jobs/batch', { holdUntil })

  const running = plat.start(['run', '--all', '--detach', '--', 'true'])
  await expect.poll(() => proxy.seen).toContain('POST /api/v1/jobs/batch')
  running.interrupt()
  await running.says(/Cancelling/)
  release()
  const { exitCode, out, err } = await running.ended
  expect(exitCode).toBe(130)
  expect(out).toMatch(/^batch_\w+\n$/)
  expect(err).toContain('500 jobs accepted, 1 not tried.')
  await plat.run(['batch', 'wait', out.trim()])
  const { counts } = await plat.json(['batch', 'get', out.trim()])
  expect(counts).toMatchObject({ cancelled: 500 })
})
