import { join } from 'node:path'
import { expect, test } from 'vitest'
import { until } from '../conformance/support/until.ts'
import { PlatformProcess } from '../support/platform.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { isRunning, ledger } from '../support/script.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('a relay killed in the middle of a script reports it interrupted, never runs it again, and takes the next job', async () => {
  await using platform = await PlatformProcess.start()
  await using folder = await temporaryFolder()
  const api = await platform.setUp()
  const cluster = await api.newCluster()
  const runs = join(folder.path, 'runs')

  const jobId = await (async () => {
    await using relay = runRelayCommand(cluster.relayCommand, folder.path)
    const submitted = await api.submit(cluster.id, { script: `echo $$ >>'${runs}'; sleep 600` })
    await ledger(runs)
    await relay.kill()
    return submitted
  })()
  expect(await api.job(jobId)).toMatchObject({ status: 'Running' })

  await using revived = runRelayCommand(cluster.relayCommand, folder.path)
  const job = await until('the job ends', async () => {
    const current = await api.job(jobId)
    return current.status !== 'Running' && current
  })
  expect(job).toMatchObject({ status: 'Failed', statusReason: 'interrupted' })

  const next = await api.submit(cluster.id, { script: 'echo next' })
  await until('the next job ends', async () => (await api.job(next)).completedAt !== undefined)
  expect(await api.job(next)).toMatchObject({ status: 'Completed', result: { output: 'next\n', exitCode: 0 } })

  revived.interrupt()
  await until('the relay has said goodbye', async () => (await api.cluster(cluster.id)).status === 'Offline')
  const [processId = '', ...others] = await ledger(runs)
  expect(others).toEqual([])
  expect(await isRunning(processId)).toBe(false)
})
