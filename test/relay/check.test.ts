import { writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { listen, type ServerReply, startServer } from '../support/http-server.ts'
import { missingPrograms } from '../support/installed-programs.ts'
import { Program } from '../support/program.ts'
import { createCertificates } from '../support/slapd.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { RelayProcess, Stage, writeBundle } from './support/stage.ts'

const resources = new AsyncDisposableStack()
afterAll(() => resources.disposeAsync())
const folder = resources.use(await temporaryFolder()).path
const bundle = await writeBundle(folder)

async function check(args: string[], environment: Record<string, string> = {}) {
  const program = new RelayProcess(bundle, { args: ['--check', ...args], environment })
  return { exitCode: await program.exitCode, text: program.text }
}

const html = { 'content-type': 'text/html' }
const replies: Record<string, ServerReply> = {
  '/missing/health/live': { status: 404, body: '{"error":"not_found"}' },
  '/sign-in/health/live': { status: 200, headers: html, body: '<h1>Welcome to the airport</h1>' },
  '/down/health/live': { status: 503, body: 'Service Unavailable' },
  '/moved/health/live': { status: 308, headers: { location: 'https://new.example.com' } },
  '/late/health/live': { status: 200, headers: { date: 'Fri, 01 Jan 2021 00:00:00 GMT' }, body: '{"status":"ok"}' },
}
const server = resources.use(await startServer(({ url }) => replies[url.pathname]))

test.for([
  ['a name that is not known', 'http://platform.invalid', 10, 'DNS', 'Check --server and the name servers'],
  ['a closed port', 'http://127.0.0.1:1', 12, 'Connection', 'let the firewall allow'],
  ['a port without TLS', server.url.replace('http', 'https'), 13, 'TLS', 'Check the protocol and port'],
  ['another server', `${server.url}/missing`, 14, 'Platform', 'not like the platform'],
  ['a sign-in page of the network', `${server.url}/sign-in`, 14, 'Platform', 'requires a sign-in'],
  ['a platform that is down', `${server.url}/down`, 14, 'Platform', 'is not available (status 503)'],
  ['an old address', `${server.url}/moved`, 14, 'Platform', 'Use that address as --server'],
  ['a clock that is off', `${server.url}/late`, 15, 'Time', 'ahead of that of the platform. Correct it'],
] as const)('--check names the hop and the next step for %s', async ([, address, exitCode, hop, advice]) => {
  const result = await check(['--server', address])
  const line = result.text.trim().split('\n').at(-1)
  expect([line?.startsWith(`${hop}: FAILED. `), line]).toEqual([true, expect.stringContaining(advice)])
  expect(result.exitCode).toBe(exitCode)
})

const noProxyReason = missingPrograms('tinyproxy')
test.skipIf(noProxyReason !== '')(`--check names what a proxy refuses${noProxyReason}`, async () => {
  const rules = ['Listen 127.0.0.1', 'Port 3129', 'BasicAuth user secret', 'ConnectPort 443']
  writeFileSync(join(folder, 'proxy.conf'), `${rules.join('\n')}\n`)
  await using proxy = new Program('tinyproxy', ['-d', '-c', join(folder, 'proxy.conf')], {
    cwd: folder,
    env: process.env,
  })
  await proxy.writes(/Accepting connections/)
  for (const [address, viaProxy, advice] of [
    ['https://platform.invalid', 'http://127.0.0.1:1', /not available \(ECONNREFUSED\); check its address/],
    ['https://platform.invalid', 'http://127.0.0.1:3129', /status 407\); set its user name and password/],
    ['https://platform.invalid:444', 'http://user:secret@127.0.0.1:3129', /status 403\); let it allow CONNECT/],
    [
      'https://platform.invalid',
      'http://user:secret@127.0.0.1:3129',
      /status 50\d\); check that it is a proxy and can reach/,
    ],
  ] as const) {
    const result = await check(['--server', address], { HTTPS_PROXY: viaProxy })
    expect(result).toEqual({ exitCode: 11, text: expect.stringMatching(advice) })
    expect(result.text).toMatch(/^Proxy: FAILED\. The proxy http:\/\/127.0.0.1/)
  }
})

const noTlsReason = missingPrograms('openssl')
test.skipIf(noTlsReason !== '')(`--check tells an unknown authority from a wrong name${noTlsReason}`, async () => {
  const { cert, key } = await createCertificates(folder)
  await using front = await listen(createServer({ cert, key }, (_, outgoing) => void outgoing.end()))
  const [, port] = front.host.split(':')
  const unknownAuthority = await check(['--server', `https://localhost:${port}`])
  expect(unknownAuthority).toEqual({
    exitCode: 13,
    text: expect.stringMatching(/TLS: FAILED.*Test authority, .*NODE_EXTRA_CA_CERTS/),
  })
  const missingFile = await check(['--server', `https://localhost:${port}`], {
    NODE_EXTRA_CA_CERTS: join(folder, 'none'),
  })
  expect(missingFile.text).toMatch(/NODE_EXTRA_CA_CERTS cannot be read/)
  const NODE_EXTRA_CA_CERTS = join(folder, 'ca.pem')
  const wrongHost = await check(['--server', `https://127.0.0.1:${port}`], { NODE_EXTRA_CA_CERTS })
  expect(wrongHost).toEqual({ exitCode: 13, text: expect.stringMatching(/belongs to DNS:localhost, not to 127/) })
})

test('--check reports the identity and the channel of a relay without disturbing it', async () => {
  await using stage = await Stage.start()
  const { platform, stateFolder } = stage
  await platform.until(() => platform.broker.openCount === 1)
  const args = ['--state-dir', stateFolder]
  const running = await check(args)
  expect(running).toEqual({
    exitCode: 0,
    text: expect.stringMatching(/^DNS: ok.*\nPlatform: ok.*\nRelay: ok.*\nChannel: ok, open/),
  })
  expect(platform.broker.connections).toHaveLength(1)
  await stage.relay.end('SIGKILL')
  expect((await check(args)).text).toMatch(/Channel: ok, its address accepts connections; the relay is not running\n$/)
  platform.broker.isReachable = false
  expect(await check(args)).toEqual({ exitCode: 17, text: expect.stringMatching(/Channel: FAILED. ws:.*Let proxies/) })
  const probedJob = platform.addJob({}, `job_${'0'.repeat(26)}`)
  probedJob.isFinished = true
  expect((await check(args)).text).toMatch(/Relay: ok, relay_\w+ waits for approval.*\nChannel: FAILED/)
  platform.jobs.splice(platform.jobs.indexOf(probedJob))
  platform.guard.rejectsAll = true
  expect(await check(args)).toEqual({ exitCode: 16, text: expect.stringMatching(/Relay: FAILED.*\(unauthenticated\)/) })
  platform.guard.rejectsAll = false
  platform.guard.revoke(platform.relayId)
  expect(await check(args)).toEqual({ exitCode: 4, text: expect.stringMatching(/Relay: FAILED.*has revoked/) })
})
