import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { over } from '../conformance/support/modules.ts'
import { waitFor } from '../support/wait-for.ts'
import { PlatformProcess } from '../support/platform.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('a backup that is restored elsewhere is the whole platform: people, sessions, jobs, relay, module, audit trail', async () => {
  await using folder = await temporaryFolder()
  await using platform = await PlatformProcess.start({ PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: '1' })
  const api = await platform.setUp()
  const admin = await api.admin
  const cluster = await api.newCluster()
  await using relay = runRelayCommand(cluster.relayCommand, folder.path)
  await relay.writes(/Enrolled/)
  const person = await api.newPerson('Operator')
  const session = await api.signIn()
  const jobId = await api.submit(cluster.id, { script: 'echo kept' })
  await waitFor('the job ends', async () => (await api.job(jobId)).completedAt !== undefined)
  await over(api, expectStatus(await admin.post('/api/v1/modules/hello/install', {}), 202))
  const before = {
    job: await api.job(jobId),
    users: expectStatus(await admin.get('/api/v1/users'), 200),
    webhook: expectStatus(
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
    stderr: expect.stringMatching(/^The folder .* contains data\. Move them/),
  })
  const elsewhere = join(folder.path, 'elsewhere', 'data')
  await platform.command(`PLAT_DATA_DIR='${elsewhere}' npm run -s restore -- '${file}'`)
  await platform.restart({ PLAT_DATA_DIR: elsewhere })

  expect(expectStatus(await admin.get('/api/v1/users'), 200)).toEqual(before.users)
  expect(await api.job(jobId)).toEqual(before.job)
  expect(before.job.result.output).toBe('kept\n')
  expectStatus(await api.anonymous.get('/api/v1/setup/status'), 403, 'setup_already_complete')
  await api.signIn()
  await api.signIn(person)
  const { refreshToken } = session
  expectStatus(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 200)
  const webhooks = expectStatus(await admin.get('/api/v1/webhooks'), 200).items
  expect(webhooks.map(({ id }: { id: string }) => id)).toContain(before.webhook)

  await waitFor('the relay beats', async () => (await api.cluster(cluster.id)).status === 'Healthy')
  const next = await api.submit(cluster.id, { script: 'echo next' })
  await waitFor('the next job ends', async () => (await api.job(next)).completedAt !== undefined)
  expect(await api.job(next)).toMatchObject({ status: 'Completed', result: { output: 'next\n' } })
  await waitFor('the module answers', async () => (await admin.get('/api/hello')).status === 200)
  expect(expectStatus(await admin.get('/api/v1/platform/audit/verify'), 200)).toMatchObject({ valid: true })
})
