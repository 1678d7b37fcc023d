import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { waitForJobEnd } from '../conformance/support/modules.ts'
import { PlatformProcess } from '../support/platform.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { waitFor } from '../support/wait-for.ts'

test('a backup restored elsewhere has all users, sessions, jobs, relays, modules and audit entries', async () => {
  await using folder = await temporaryFolder()
  const passphraseFile = join(folder.path, 'passphrase')
  await writeFile(passphraseFile, 'correct horse battery\n')
  await using platform = await PlatformProcess.start({
    PLAT_BACKUP_PASSPHRASE_FILE: passphraseFile,
    PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: '1',
  })
  const api = await platform.setUp()
  const admin = await api.admin
  const cluster = await api.newCluster()
  await using relay = runRelayCommand(cluster.relayCommand, folder.path)
  await relay.writes(/Enrolled/)
  const user = await api.newUser('Operator')
  const session = await api.signIn()
  const jobId = await api.submit(cluster.id, { script: 'echo first' })
  await waitFor('the end of the job', async () => (await api.job(jobId)).completedAt !== undefined)
  await waitForJobEnd(api, expectStatus(await admin.post('/api/v1/modules/hello/install', {}), 202))
  const dataBefore = {
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
    stderr: expect.stringMatching(/^The folder .* contains data, such as .*\. Move it/),
  })
  const otherFolder = join(folder.path, 'elsewhere', 'data')
  await platform.command(`PLAT_DATA_DIR='${otherFolder}' npm run -s restore -- '${file}'`)
  await platform.restart({ PLAT_DATA_DIR: otherFolder })

  expect(expectStatus(await admin.get('/api/v1/users'), 200)).toEqual(dataBefore.users)
  expect(await api.job(jobId)).toEqual(dataBefore.job)
  expect(dataBefore.job.result.output).toBe('first\n')
  expectStatus(await api.anonymous.get('/api/v1/setup/status'), 403, 'setup_already_complete')
  await api.signIn()
  await api.signIn(user)
  const { refreshToken } = session
  expectStatus(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 200)
  const webhooks = expectStatus(await admin.get('/api/v1/webhooks'), 200).items
  expect(webhooks.map(({ id }: { id: string }) => id)).toContain(dataBefore.webhook)

  await waitFor('a Healthy cluster', async () => (await api.cluster(cluster.id)).status === 'Healthy')
  const next = await api.submit(cluster.id, { script: 'echo next' })
  await waitFor('the end of the next job', async () => (await api.job(next)).completedAt !== undefined)
  expect(await api.job(next)).toMatchObject({ status: 'Completed', result: { output: 'next\n' } })
  await waitFor('the module', async () => (await admin.get('/api/hello')).status === 200)
  expect(expectStatus(await admin.get('/api/v1/platform/audit/verify'), 200)).toMatchObject({ valid: true })
})

const kidOf = (token: string): string => JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid

test('rotates keys without a failed request, keeps tokens valid, and signs with the new key after a restart', async () => {
  await using platform = await PlatformProcess.start()
  const api = await platform.setUp()
  const requestMeStatus = async ({ accessToken }: any) =>
    (await api.anonymous.withToken(accessToken).get('/api/v1/auth/me')).status
  const oldSession = await api.signIn()
  const statuses: number[] = []
  const stop = new AbortController()
  const call = async () => {
    let session = await api.signIn()
    while (!stop.signal.aborted) {
      statuses.push(await requestMeStatus(session))
      const { refreshToken } = session
      session = expectStatus(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 200)
    }
  }
  const callers = [call(), call(), call()]
  const rotations = await Promise.all([1, 2].map(() => platform.command('npm run -s rotate-keys')))
  expect(rotations).toEqual([1, 2].map(() => expect.stringContaining('a new key')))
  expect(await requestMeStatus(oldSession)).toBe(200)
  const { keys } = expectStatus(await api.anonymous.get('/.well-known/jwks.json'), 200)
  expect(keys.length).toBeGreaterThanOrEqual(3)
  expect(keys.map(({ kid }: { kid: string }) => kid)).toContain(kidOf(oldSession.accessToken))
  const count = statuses.length
  await waitFor('requests after the rotation', async () => statuses.length > count + 10)
  stop.abort()
  await Promise.all(callers)
  expect(new Set(statuses)).toEqual(new Set([200]))

  await platform.kill()
  await platform.restart()
  const newSession = await waitFor('a token of the new key', async () => {
    const session = await api.signIn()
    return kidOf(session.accessToken) !== kidOf(oldSession.accessToken) && session
  })
  expect([await requestMeStatus(newSession), await requestMeStatus(oldSession)]).toEqual([200, 200])
  await platform.stop()
  await expect(platform.command('npm run -s rotate-keys')).rejects.toMatchObject({
    stderr: expect.stringMatching(/^No platform runs on the data in .* Start it with: npm start/),
  })
})

test('a person with the data folder resets the password of the only administrator', async () => {
  await using platform = await PlatformProcess.start()
  const api = await platform.setUp()
  const text = await platform.command('npm run -s reset-password -- ada')
  const [, password = ''] = /^The new password of ada is: (\S+)$/m.exec(text) ?? []
  await expect(platform.command('npm run -s reset-password -- eve')).rejects.toMatchObject({
    stderr: expect.stringContaining('The user does not exist'),
  })
  expectStatus(await api.anonymous.post('/api/v1/auth/login', { username: 'ada', password }), 200)
})

test('generates a deleted module key and registry password again, and signs hello with the new key', async () => {
  await using platform = await PlatformProcess.start()
  const admin = await (await platform.setUp()).admin
  const keyFile = join(platform.dataDir, 'module-signing-key.pem')
  const secrets = async () => [await readFile(keyFile, 'utf8'), await platform.command('npm run -s registry-password')]
  const isVerified = async () => {
    const { items } = expectStatus(await admin.get('/api/v1/modules/catalog'), 200)
    return items.some(({ id, verified }: { id: string; verified: boolean }) => id === 'hello' && verified)
  }
  const secretsBefore = await secrets()
  expect(await isVerified()).toBe(true)
  await platform.stop()
  await Promise.all([rm(keyFile), rm(join(platform.dataDir, 'registry-password'))])
  await platform.restart()
  for (const [index, secret] of (await secrets()).entries()) expect(secret).not.toBe(secretsBefore[index])
  expect(await isVerified()).toBe(true)
})
