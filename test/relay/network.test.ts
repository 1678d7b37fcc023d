import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { missingPrograms } from '../support/installed-programs.ts'
import { listen } from '../support/http-server.ts'
import { bundlePlat } from '../support/plat-bundle.ts'
import { Program } from '../support/program.ts'
import { createCertificates } from '../support/slapd.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { canIsolate, IsolatedNetwork } from './support/network.ts'
import { Stage } from './support/stage.ts'

let network: IsolatedNetwork
let stage: Stage
beforeEach(() => void (network = canIsolate ? new IsolatedNetwork() : network))
afterEach(async () => {
  await stage?.[Symbol.asyncDispose]()
  network?.[Symbol.dispose]()
})

function startProxy(folder: string, allowed: string): Program {
  const address = [`Listen ${network.host}`, 'Port 3128', 'Timeout 600']
  const rules = [...address, 'BasicAuth user secret', `ConnectPort ${new URL(allowed).port}`]
  writeFileSync(join(folder, 'proxy.conf'), `${rules.join('\n')}\n`)
  const args = ['netns', 'exec', network.servers, 'tinyproxy', '-d', '-c', join(folder, 'proxy.conf')]
  return new Program('ip', args, { cwd: folder, env: process.env })
}

const start = async (settings: Parameters<typeof Stage.start>[0]) =>
  (stage = await Stage.start({ port: await network.openPort(), namespace: network.clients, ...settings }))

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
    await using proxy = startProxy(stage.folder, platform.url)
    const job = await platform.run({ script: 'echo out' })
    expect(job.output).toBe('out\n')
    if (isAllowed) await platform.until(() => platform.broker.openCount === 1)
    else
      await stage.relay.writes(
        /The control channel is closed: the proxy http:\/\/198\.51\.100\.1:3128 does not connect/,
      )
    expect(proxy.hasEnded).toBe(false)
    // Requests that bypass the proxy would come from the other end of the cable.
    expect([...platform.addresses]).toEqual([network.host])
  },
  60_000,
)

const skipReason = missingPrograms('ip', 'tinyproxy', 'openssl')
test.skipIf(!canIsolate || skipReason !== '')(
  `plat reaches the platform only through its proxy, with credentials and a private authority${skipReason}`,
  async () => {
    await using folder = await temporaryFolder()
    const { ca: _, ...pair } = await createCertificates(folder.path, `IP:${network.host}`)
    const addresses: (string | undefined)[] = []
    const answer = JSON.stringify({ error: 'unauthenticated', message: 'No session.', traceId: '1' })
    const server = createServer(pair, ({ socket }, outgoing) => {
      addresses.push(socket.remoteAddress)
      outgoing.writeHead(401, { 'content-type': 'application/json' }).end(answer)
    })
    await using listening = await listen(server, await network.openPort())
    await using proxy = startProxy(folder.path, listening.url)
    await proxy.writes(/Accepting connections/)
    const mainFile = await bundlePlat()
    const runPlat = async (HTTPS_PROXY: string) => {
      const args = ['netns', 'exec', network.clients, process.execPath, mainFile, 'cluster', 'list']
      const extra = { NODE_EXTRA_CA_CERTS: join(folder.path, 'ca.pem'), PLAT_TOKEN: 'token', HOME: folder.path }
      const PLAT_SERVER = listening.url.replace('http:', 'https:')
      const env = { PATH: process.env['PATH'], ...extra, PLAT_SERVER, HTTPS_PROXY }
      await using program = new Program('ip', args, { cwd: folder.path, env })
      return { exitCode: (await program.ended).exitCode, text: program.text }
    }
    const host = `${network.host}:3128`
    expect(await runPlat(`http://user:s%65cret@${host}`)).toMatchObject({
      exitCode: 3,
      text: expect.stringMatching(/The token in PLAT_TOKEN is not valid/),
    })
    expect(await runPlat(`http://user:wrong@${host}`)).toMatchObject({
      exitCode: 4,
      text: expect.stringMatching(/status 40[17]\)/),
    })
    expect(await runPlat(`socks5://${host}`)).toMatchObject({
      exitCode: 2,
      text: expect.stringMatching(/HTTPS_PROXY names a proxy/),
    })
    expect(addresses).toEqual([network.host])
  },
  60_000,
)
