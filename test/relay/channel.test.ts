import { parseChannel } from '@platform/relay/channel-settings'
import { connectPacket, PacketReader, subscribePacket } from '@platform/relay/mqtt'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { canMount, mountedFolder } from '../support/mounted-folder.ts'
import { waitForFileScript } from '../support/script.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { waitFor } from '../support/wait-for.ts'
import { publish } from './support/fake-broker.ts'
import { Stage } from './support/stage.ts'

let stage: Stage | undefined
afterEach(async () => {
  await stage?.[Symbol.asyncDispose]()
  stage = undefined
})

async function start(...settings: Parameters<typeof Stage.start>) {
  stage = await Stage.start(...settings)
  return stage.platform
}

async function withChannel() {
  const platform = await start()
  await platform.until(() => platform.heartbeats.some(({ channel }) => channel === 'open'))
  return platform
}

test('a wake-up starts a job, which takes one heartbeat and the report with its output', async () => {
  const platform = await withChannel()
  await platform.until(() => platform.heartbeats.at(-1)?.factsHash !== undefined)
  const countBefore = platform.calls.length
  const job = await platform.run({ script: 'echo out' })
  expect(platform.calls.slice(countBefore)).toEqual(['heartbeat', 'complete'])
  expect(job.output).toBe('out\n')
})

test('reports a lost channel at once, works without one, and opens it again', async () => {
  const platform = await withChannel()
  platform.broker.isReachable = false
  platform.broker.reset()
  await platform.until(() => platform.heartbeats.at(-1)?.channel === 'closed')
  platform.heartbeatIntervalSeconds = 1
  platform.broker.isReachable = true
  await platform.until(() => platform.heartbeats.at(-1)?.channel === 'open')
  expect(new Set(platform.broker.connections).size).toBe(1)
  await platform.run({ script: 'true' })
  expect(platform.rejections).toEqual([])
})

test('without a channel, heartbeats follow every two seconds after a job', async () => {
  const platform = await start({
    prepare: ({ broker }) => {
      broker.isReachable = false
    },
  })
  const firstJob = platform.addJob({ script: 'true' })
  await platform.until(() => firstJob.completion !== undefined)
  const secondJob = platform.addJob({ script: 'true' })
  // The time limit of this test is shorter than the regular interval of 30 s.
  await platform.until(() => secondJob.completion !== undefined)
}, 25_000)

test.for<[string, (topic: string) => (Buffer | string)[]]>([
  ['text', () => ['text']],
  ['an unknown packet', () => [Buffer.from([0xf0, 0])]],
  ['a packet without an end', () => [Buffer.from([0x30, 0xff, 0xff, 0xff, 0xff, 0xff])]],
  ['a long packet', () => [Buffer.concat([Buffer.from([0x30, 0xff, 0x1f]), Buffer.alloc(4000)])]],
  ['a topic longer than its packet', () => [Buffer.from([0x30, 3, 0, 9, 0x61])]],
  ['a message that needs a response', (topic) => [Buffer.concat([Buffer.from([0x32]), publish(topic).subarray(1)])]],
  ['a message beyond the limit', () => [Buffer.alloc(100_000)]],
  ['messages of another topic', () => Array<Buffer>(100).fill(publish('other'))],
])('works on after the broker has sent %s', async ([, messages]) => {
  const platform = await withChannel()
  for (const message of messages('test/relay')) platform.broker.send(message)
  platform.heartbeatIntervalSeconds = 1
  await platform.run({ script: 'true' })
})

test('a job that waits for a slot starts even if the slot becomes free during a heartbeat', async () => {
  const platform = await start({ args: ['--slots', '1'] })
  await platform.until(() => platform.heartbeats.some(({ channel }) => channel === 'open'))
  await using folder = await temporaryFolder()
  const gate = join(folder.path, 'gate')
  const firstJob = platform.addJob({ script: `echo started; ${waitForFileScript(gate)}` })
  await platform.until(() => firstJob.output !== '')
  const { promise, resolve } = Promise.withResolvers<void>()
  platform.held.set('heartbeat', promise)
  const secondJob = platform.addJob({ script: 'true' })
  await platform.until(() => platform.heartbeats.at(-1)?.freeSlots === 0)
  await writeFile(gate, '')
  await platform.until(() => firstJob.completion !== undefined)
  platform.held.delete('heartbeat')
  resolve()
  // The time limit of this test is shorter than the regular interval of 30 s.
  await platform.until(() => secondJob.completion !== undefined)
}, 25_000)

test('the next job starts while a result is reported, and a third job after the report', async () => {
  const platform = await start({ args: ['--slots', '1'] })
  await platform.until(() => platform.heartbeats.some(({ channel }) => channel === 'open'))
  const { promise, resolve } = Promise.withResolvers<void>()
  platform.held.set('complete', promise)
  await using folder = await temporaryFolder()
  const gate = join(folder.path, 'gate')
  const scripts = [1, 2, 3].map((code) => `${waitForFileScript(gate)}; exit ${code}`)
  const [firstJob, secondJob, thirdJob] = scripts.map((script) => platform.addJob({ script }))
  await platform.until(() => firstJob?.claimCount === 1)
  await writeFile(gate, '')
  await platform.until(() => secondJob?.claimCount === 1)
  const journal = () => readFile(`${stage?.stateFolder}/journal.jsonl`, 'utf8')
  await waitFor('both scripts end', async () => (await journal()).match(/"state":"finished"/g)?.length === 2)
  expect(thirdJob?.claimCount).toBe(0)
  resolve()
  // The time limit of this test is shorter than the regular interval of 30 s.
  await platform.until(() => thirdJob?.completion !== undefined)
  expect([firstJob, secondJob, thirdJob].map((job) => job?.completion?.exitCode)).toEqual([1, 2, 3])
}, 25_000)

test('with 20 slots, at most 36 jobs are in progress while results are reported', async () => {
  const platform = await start({ args: ['--slots', '20'] })
  platform.heartbeatIntervalSeconds = 1
  await platform.until(() => platform.heartbeats.some(({ channel }) => channel === 'open'))
  const { promise, resolve } = Promise.withResolvers<void>()
  for (const call of ['complete', 'completions'] as const) platform.held.set(call, promise)
  await using folder = await temporaryFolder()
  const jobs = Array.from({ length: 37 }, () => platform.addJob({ script: `mktemp -p '${folder.path}'` }))
  await waitFor('36 scripts run', async () => (await readdir(folder.path)).length >= 36)
  const heartbeatCount = platform.heartbeats.length
  await platform.until(() => platform.heartbeats.length > heartbeatCount + 2)
  expect(jobs.filter(({ claimCount }) => claimCount > 0)).toHaveLength(36)
  resolve()
  await platform.until(() => jobs.every(({ completion }) => completion !== undefined))
})

test.skipIf(!canMount)(
  'a job that waits because of a full disk starts after the next report',
  async () => {
    await using disk = await mountedFolder('8m')
    const platform = await start({ args: ['--slots', '1', '--state-dir', disk.path] })
    await platform.until(() => platform.heartbeats.some(({ channel }) => channel === 'open'))
    await using folder = await temporaryFolder()
    const gate = join(folder.path, 'gate')
    const firstJob = platform.addJob({ script: `echo started; ${waitForFileScript(gate)}` })
    await platform.until(() => firstJob.output !== '')
    const secondJob = platform.addJob({ script: 'true' })
    await platform.until(() => platform.heartbeats.at(-1)?.freeSlots === 0)
    const { promise, resolve } = Promise.withResolvers<void>()
    platform.held.set('complete', promise)
    const countBefore = platform.heartbeats.length
    const file = join(disk.path, 'full')
    await writeFile(file, Buffer.alloc(7 * 1024 * 1024))
    await writeFile(gate, '')
    await platform.until(() => platform.heartbeats.length > countBefore)
    expect(platform.heartbeats.at(-1)?.freeSlots).toBe(0)
    await rm(file)
    resolve()
    // The time limit of this test is shorter than the regular interval of 30 s.
    await platform.until(() => secondJob.completion !== undefined)
  },
  25_000,
)

test('a flood of wake-ups causes about ten heartbeats', async () => {
  const platform = await withChannel()
  const countBefore = platform.heartbeats.length
  for (let count = 0; count < 200; count++) {
    platform.broker.wake()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  expect(platform.heartbeats.length - countBefore).toBeLessThanOrEqual(16)
})

const settings = { url: '/channel', clientId: 'c', topic: 't', username: '', keepAliveSeconds: 40 }
const http = 'http://127.0.0.1:8080'
const https = 'https://platform.example.com/base'

test.each([
  [https, {}, 'wss://platform.example.com/base/channel'],
  [http, {}, 'ws://127.0.0.1:8080/channel'],
  [https, { url: 'wss://broker.example.com/mqtt?a=b' }, 'wss://broker.example.com/mqtt?a=b'],
  [http, { url: 'ws://broker.example.com/mqtt' }, 'ws://broker.example.com/mqtt'],
  [https, { url: 'ws://broker.example.com/mqtt' }, undefined],
  [https, { url: 'https://broker.example.com/mqtt' }, undefined],
  [https, { url: '//broker.example.com/mqtt' }, undefined],
  [https, { url: 'wss://user:secret@broker.example.com/' }, undefined],
  [https, { url: 'file:///etc/passwd' }, undefined],
  [https, { url: 'wss://' }, undefined],
  [https, { url: 7 }, undefined],
  [https, { clientId: 'c'.repeat(129) }, undefined],
  [https, { topic: undefined }, undefined],
  [https, { keepAliveSeconds: 0 }, undefined],
  [https, { keepAliveSeconds: '40' }, undefined],
])('with the server %s, the channel %j has the address %s', (server, change, url) => {
  const parsed = parseChannel({ ...settings, ...change }, server)
  expect(typeof parsed === 'string' ? undefined : parsed.url).toBe(url)
})

test.each(['text', [], null])('rejects the channel %j', (value) => {
  expect(typeof parseChannel(value, https)).toBe('string')
})

test('reads packets that arrive in any parts, and writes long ones', () => {
  const bytes = Buffer.concat([Buffer.from([0x20, 2, 0, 0]), publish('a/b'), Buffer.from([0xd0, 0])])
  const reader = new PacketReader()
  const packets = [...bytes].flatMap((byte) => reader.read(Buffer.from([byte])))
  expect(packets).toEqual([{ type: 'connack', code: 0 }, { type: 'publish', topic: 'a/b' }, { type: 'pingresp' }])
  const packet = connectPacket({ clientId: 'c', username: '', password: 'p'.repeat(300), keepAliveSeconds: 40 })
  expect([...packet.subarray(0, 3)]).toEqual([0x10, 0xbd, 0x02])
  expect(subscribePacket('a').toString('hex')).toBe('8206000100016100')
})
