import { existsSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Program } from '../support/program.ts'
import { canIsolate, IsolatedNetwork } from './support/network.ts'
import { Stage } from './support/stage.ts'

let network: IsolatedNetwork
let stage: Stage
beforeEach(() => void (network = canIsolate ? new IsolatedNetwork() : network))
afterEach(async () => {
  await stage?.[Symbol.asyncDispose]()
  network?.[Symbol.dispose]()
})

const start = async (settings: Parameters<typeof Stage.start>[0]) =>
  (stage = await Stage.start({ host: network.host, namespace: network.name, ...settings }))

test.skipIf(!canIsolate)(
  'a relay whose cable was pulled returns by itself, and no job is lost',
  async () => {
    const { platform } = await start({ prepare: (fake) => void (fake.keepAliveSeconds = 5) })
    await platform.until(() => platform.broker.openCount === 1)
    network.pull()
    const job = platform.addJob({ script: 'echo out' })
    await stage.relay.writes(/The control channel is closed/)
    network.plug()
    await platform.until(() => job.completion !== undefined)
    expect(job.output).toBe('out\n')
    await platform.until(() => platform.broker.connections.length === 2)
  },
  120_000,
)

test.skipIf(!canIsolate || !existsSync('/usr/bin/tinyproxy')).each([
  ['opens the channel', true],
  ['polls without a channel', false],
])(
  'behind a proxy with credentials, a relay %s',
  async (_, isAllowed) => {
    const proxyUrl = `http://user:s%65cret@${network.host}:3128`
    const environment = { HTTP_PROXY: proxyUrl, NO_PROXY: 'other.example.com' }
    const { platform } = await start({
      environment,
      prepare: (fake) => {
        if (!isAllowed) fake.channelUrl = `ws://${network.host}:1/channel`
      },
    })
    const rules = [
      `Listen ${network.host}`,
      'Port 3128',
      'BasicAuth user secret',
      `ConnectPort ${new URL(platform.url).port}`,
    ]
    writeFileSync(stage.file('proxy.conf'), [...rules, 'Timeout 600', ''].join('\n'))
    await using proxy = new Program('tinyproxy', ['-d', '-c', stage.file('proxy.conf')], {
      cwd: stage.folder,
      env: process.env,
    })
    const job = await platform.run({ script: 'echo out' })
    expect(job.output).toBe('out\n')
    if (isAllowed) await platform.until(() => platform.broker.openCount === 1)
    else
      await stage.relay.writes(
        /The control channel is closed: the proxy http:\/\/198\.51\.100\.1:3128 does not connect/,
      )
    expect(proxy.hasEnded).toBe(false)
    // Direct requests come from the other end of the cable.
    expect([...platform.addresses]).toEqual([network.host])
  },
  60_000,
)
