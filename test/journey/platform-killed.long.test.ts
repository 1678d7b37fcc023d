import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { until } from '../conformance/support/until.ts'
import { PlatformProcess } from '../support/platform.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { ledger, waitFor } from '../support/script.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('jobs that run while the platform is killed complete with all their output once it is back', async () => {
  await using platform = await PlatformProcess.start()
  await using folder = await temporaryFolder()
  const api = await platform.setUp()
  const { refreshToken } = await api.signIn()
  const [cluster, other] = [await api.newCluster(), await api.newCluster()]
  await using relay = runRelayCommand(cluster.relayCommand, folder.path)

  const file = (name: string) => join(folder.path, name)
  // One script ends while the platform is away, the other one after it is back.
  const script = (name: string) =>
    `echo ${name} 1; echo run >>'${file(name)}'; ${waitFor(file(`${name}-gate`))}; seq 2 5000; echo end >>'${file(name)}'`
  const names = ['away', 'back']
  const jobIds = []
  for (const name of names) jobIds.push(await api.submit(cluster.id, { script: script(name) }))
  const waiting = await api.submit(other.id)
  for (const name of names) expect(await ledger(file(name))).toEqual(['run'])

  await platform.kill()
  await writeFile(file('away-gate'), '')
  await until('a script ends without the platform', async () => (await ledger(file('away'))).length === 2)
  await platform.restart()
  await writeFile(file('back-gate'), '')

  const numbers = Array.from({ length: 4999 }, (_, index) => `${index + 2}\n`).join('')
  for (const [index, jobId] of jobIds.entries()) {
    await until('the job ends', async () => (await api.job(jobId)).completedAt !== undefined)
    const { status, result } = await api.job(jobId)
    expect([status, result.exitCode]).toEqual(['Completed', 0])
    expect(result.output).toBe(`${names[index]} 1\n${numbers}`)
    expect(await ledger(file(names[index] ?? ''))).toEqual(['run', 'end'])
  }

  await until('the cluster is Healthy', async () => (await api.cluster(cluster.id)).status === 'Healthy')
  relay.interrupt()
  await until('the relay has said goodbye', async () => (await api.cluster(cluster.id)).status === 'Offline')
  expect(await api.cluster(other.id)).toMatchObject({ name: other.name, status: 'Pending' })
  expect(await api.job(waiting)).toMatchObject({ status: 'Queued' })
  answered(await api.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 200)
})
