import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { over } from '../conformance/support/modules.ts'
import { until } from '../conformance/support/until.ts'
import { PlatformProcess } from '../support/platform.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('a backup that is restored elsewhere is the whole platform: people, sessions, jobs, relay, module, audit trail', async () => {
  await using folder = await temporaryFolder()
  await using platform = await PlatformProcess.start({ PLAT_MODULE_TICK_SECONDS: '1' })
  const api = await platform.setUp()
  const admin = await api.admin
  const cluster = await api.newCluster()
  await using relay = runRelayCommand(cluster.relayCommand, folder.path)
  await relay.writes(/Enrolled/)
  const person = await api.newPerson('Operator')
  const session = await api.signIn()
  const jobId = await api.submit(cluster.id, { script: 'echo kept' })
  await until('the job ends', async () => (await api.job(jobId)).completedAt !== undefined)
  await over(api, answered(await admin.post('/api/v1/modules/hello/install', {}), 202))
  const before = {
    job: await api.job(jobId),
    users: answered(await admin.get('/api/v1/users'), 200),
    webhook: answered(
      await admin.post('/api/v1/webhooks', { url: 'https://hooks.example.com/a', events: ['*'], enabled: false }),
      201,
    ).id,
  }

  const file = join(folder.path, 'platform.backup')
  await expect(platform.command(`npm run -s backup -- '${file}'`)).rejects.toMatchObject({
    stderr: expect.stringMatching(/^The platform with process id \d+ uses the data in .* Stop it/),
  })
  await platform.stop()
  expect(await platform.command(`npm run -s backup -- '${file}'`)).toMatch(/^\d+ files, [\d.]+ MiB, are in /)
  expect((await stat(file)).mode & 0o777).toBe(0o600)

  await expect(platform.command(`npm run -s restore -- '${file}'`)).rejects.toMatchObject({
    stderr: expect.stringMatching(/^There are data in .* Move them away/),
  })
  const elsewhere = join(folder.path, 'elsewhere', 'data')
  await platform.command(`PLAT_DATA_DIR='${elsewhere}' npm run -s restore -- '${file}'`)
  await platform.restart({ PLAT_DATA_DIR: elsewhere })

  expect(answered(await admin.get('/api/v1/users'), 200)).toEqual(before.users)
  expect(await api.job(jobId)).toEqual(before.job)
  expect(before.job.result.output).toBe('kept\n')
  answered(await api.anonymous.get('/api/v1/setup/status'), 403, 'setup_already_complete')
  await api.signIn()
  await api.signIn(person)
  const { refreshToken } = session
  answered(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 200)
  const webhooks = answered(await admin.get('/api/v1/webhooks'), 200).items
  expect(webhooks.map(({ id }: { id: string }) => id)).toContain(before.webhook)

  await until('the relay beats', async () => (await api.cluster(cluster.id)).status === 'Healthy')
  const next = await api.submit(cluster.id, { script: 'echo next' })
  await until('the next job ends', async () => (await api.job(next)).completedAt !== undefined)
  expect(await api.job(next)).toMatchObject({ status: 'Completed', result: { output: 'next\n' } })
  await until('the module answers', async () => (await admin.get('/api/hello')).status === 200)
  expect(answered(await admin.get('/api/v1/platform/audit/verify'), 200)).toMatchObject({ valid: true })
})
