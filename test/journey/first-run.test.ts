import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { waitFor } from '../support/wait-for.ts'
import { isLong } from '../support/long.ts'
import { PlatformProcess } from '../support/platform.ts'
import type { Program } from '../support/program.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { waitForFileScript } from '../support/script.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** What a user does with a fresh platform, from the first start to the removal of a cluster. One test follows another. */

const resources = new AsyncDisposableStack()
let platform: PlatformProcess
let api: Platform
let cluster: any
let relay: Program
let folder: string

beforeAll(async () => {
  // Two threads, as a platform has by itself.
  platform = resources.use(await PlatformProcess.start({ PLAT_FUNCTION_THREADS: '2' }))
  folder = resources.use(await temporaryFolder()).path
})
afterAll(() => resources.disposeAsync())

const ended = (jobId: string) =>
  waitFor(`${jobId} ends`, async () => {
    const job = await api.job(jobId)
    return job.completedAt !== undefined && job
  })

test('the printed command prints the initial admin token and nothing else, and setup completes with it', async () => {
  const body: any = await platform.setupBody()
  expect(body.initialAdminToken).toMatch(/^\S+$/)
  api = await platform.api()
  expectStatus(await api.anonymous.post('/api/v1/setup/complete', body), 200)
  expect(expectStatus(await (await api.admin).get('/api/v1/auth/me'), 200)).toMatchObject({ roles: ['PlatformAdmin'] })
})

test('the printed relay command makes a registered cluster Healthy', async () => {
  cluster = await api.newCluster()
  relay = resources.use(runRelayCommand(cluster.relayCommand, folder))
  await waitFor('the cluster is Healthy', async () => (await api.cluster(cluster.id)).status === 'Healthy')
  expect(await api.cluster(cluster.id)).toMatchObject({
    nodeCount: 1,
    nodes: [{ status: 'Online' }],
    relay: { status: 'Connected' },
  })
})

test('a script runs, and its output and exit code can be read', async () => {
  const { status, result } = await ended(await api.submit(cluster.id, { script: 'echo "Ω $((6 * 7))"; echo oops >&2' }))
  expect(status).toBe('Completed')
  expect(result).toMatchObject({ exitCode: 0, truncated: false })
  expect(result.output.split('\n').toSorted()).toEqual(['', 'oops', 'Ω 42'])
})

test('a script that ends with another exit code fails, and says so', async () => {
  const { status, statusReason, result } = await ended(await api.submit(cluster.id, { script: 'echo no; exit 7' }))
  expect([status, statusReason]).toEqual(['Failed', 'exit_nonzero'])
  expect(result).toMatchObject({ exitCode: 7, output: 'no\n' })
})

test('a script that takes longer than it may is ended', async () => {
  const jobId = await api.submit(cluster.id, { script: 'echo begun; sleep 600', timeoutSeconds: 1 })
  const { status, statusReason, result } = await ended(jobId)
  expect([status, statusReason]).toEqual(['Failed', 'execution_timeout'])
  expect(result).toMatchObject({ exitCode: null, output: 'begun\n' })
})

test('output is read while the script runs', async () => {
  const gate = join(folder, 'gate')
  const jobId = await api.submit(cluster.id, { script: `echo first; ${waitForFileScript(gate)}; echo second` })
  const read = async (offset: number) =>
    expectStatus(await (await api.admin).get(`/api/v1/jobs/${jobId}/output?offset=${offset}`), 200)
  const live = await waitFor('the first line arrives', async () => {
    const output = await read(0)
    return output.items.length > 0 && output
  })
  expect(live).toMatchObject({ items: [{ data: 'first\n' }], nextOffset: 6, status: 'Running', finished: false })
  await writeFile(gate, '')
  expect((await ended(jobId)).result.output).toBe('first\nsecond\n')
  expect(await read(6)).toMatchObject({ items: [{ data: 'second\n' }], status: 'Completed', finished: true })
})

test('a running script is cancelled', async () => {
  const jobId = await api.submit(cluster.id, { script: 'echo begun; sleep 600' })
  await waitFor('the script runs', async () => (await api.job(jobId)).status === 'Running')
  const admin = await api.admin
  expectStatus(await admin.delete(`/api/v1/clusters/${cluster.id}`), 409, 'cluster_has_active_jobs')
  expectStatus(await admin.post(`/api/v1/jobs/${jobId}/cancel`), 202)
  expect(await ended(jobId)).toMatchObject({ status: 'Cancelled', statusReason: 'cancelled_by_user' })
})

test(`a removed cluster is gone, and its relay ${isLong ? 'stops by itself' : 'is refused'}`, async () => {
  const admin = await api.admin
  expectStatus(await admin.delete(`/api/v1/clusters/${cluster.id}`), 204)
  expectStatus(await admin.get(`/api/v1/clusters/${cluster.id}`), 404, 'cluster_not_found')
  await relay.writes(/does not accept the identity of this relay/)
  // It asks a few times before it believes that, with longer and longer pauses. Its own tests wait for that, too.
  if (isLong) expect(await relay.ended).toMatchObject({ exitCode: 4 })
})
