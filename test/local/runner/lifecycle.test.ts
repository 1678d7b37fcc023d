import { once } from 'node:events'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { GetQueueAttributesCommand, GetQueueUrlCommand, SendMessageCommand } from '@aws-sdk/client-sqs'
import { listenAt } from '@platform/local/listening'
import { startPlatform } from '@platform/local/platform'
import { readRuntimeFile } from '@platform/local/runtime-file'
import { expect, test } from 'vitest'
import { startGate } from './gate.ts'
import { platformIn, queueClient, settingsIn, temporaryFolder } from './support.ts'

test('a stop lets the request under way, the batch under way and the held answer end', async () => {
  await using folder = await temporaryFolder()
  await using gate = await startGate()
  const hold = `{ 'grip-hold': 'response', 'grip-channel': 'a', 'grip-timeout': '600' }`
  const platform = await platformIn(folder.path, {
    jobs: `export const handler = async () => { ${gate.pass('request')}; return { statusCode: 201 } }`,
    relay: `export const handler = async () => { ${gate.pass('beat')}; return { statusCode: 200, headers: ${hold} } }`,
    'queue/jobs': `export const handler = async () => { ${gate.pass('batch')}; return {} }`,
  })
  const client = queueClient(platform)
  const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: 'jobs' }))
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: 'x' }))
  client.destroy()
  const paths = ['/api/v1/jobs', '/api/v1/relay/heartbeat']
  const requests = Promise.all(paths.map((path) => fetch(platform.url + path, { method: 'POST' })))
  await Promise.all(['request', 'beat', 'batch'].map((name) => gate.arrived(name)))
  const stopped = platform.stop()
  gate.open()
  expect((await requests).map(({ status }) => status)).toEqual([201, 200])
  await stopped

  await using again = await platformIn(folder.path)
  const next = queueClient(again)
  const queue = await next.send(new GetQueueUrlCommand({ QueueName: 'jobs' }))
  const { Attributes } = await next.send(
    new GetQueueAttributesCommand({ QueueUrl: queue.QueueUrl, AttributeNames: ['All'] }),
  )
  expect(Attributes).toMatchObject({ ApproximateNumberOfMessages: '0', ApproximateNumberOfMessagesNotVisible: '0' })
  next.destroy()
})

test('two platforms cannot share a data folder, and the first one is named', async () => {
  await using folder = await temporaryFolder()
  const settings = await settingsIn(folder.path)
  const first = await platformIn(folder.path)
  const message = `The platform with process id ${process.pid} uses the data in ${settings.dataDir}`
  await expect(startPlatform(settings)).rejects.toThrow(message)
  expect((await fetch(first.url)).status).toBe(200)
  await first.stop()
})

test('a port that is in use is named, and nothing stays behind', async () => {
  await using folder = await temporaryFolder()
  const squatter = createServer()
  const { port } = await listenAt(squatter, '127.0.0.1', 0)
  const settings = { ...(await settingsIn(folder.path)), port }
  await expect(startPlatform(settings)).rejects.toThrow(`127.0.0.1:${port} is in use`)
  squatter.close()
  await once(squatter, 'close')
  const platform = await startPlatform(settings, { log: () => undefined })
  await platform.stop()
})

test('a function that cannot be imported stops the start, and nothing stays behind', async () => {
  await using folder = await temporaryFolder()
  const broken = await settingsIn(folder.path, { auth: `throw new Error('broken at import')` })
  await expect(startPlatform(broken)).rejects.toThrow('broken at import')
  const platform = await platformIn(folder.path, { auth: 'export const handler = () => ({})' })
  await platform.stop()
})

test('the file that tells where the platform is belongs to its owner, and goes with the platform', async () => {
  await using folder = await temporaryFolder()
  const dataDir = join(folder.path, 'data')
  await mkdir(dataDir)
  await writeFile(join(dataDir, 'runtime.json'), 'half of what a killed platf')
  const platform = await platformIn(folder.path)
  expect((await stat(join(dataDir, 'runtime.json'))).mode & 0o777).toBe(0o600)
  expect(await readRuntimeFile(dataDir)).toMatchObject({ processId: process.pid, apiUrl: platform.url })
  await Promise.all([platform.stop(), platform.stop()])
  await expect(readRuntimeFile(dataDir)).rejects.toThrow('ENOENT')
})
