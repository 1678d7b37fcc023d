import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { generateKeyPair } from '@platform/oci/signature/key'
import { isNewer } from '@platform/relay/version'
import { afterAll, expect, test } from 'vitest'
import { buildRelay } from '../../scripts/build-relay.ts'
import { signRelay } from '../../scripts/release/relay.ts'
import { stride } from '../support/long.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { FakePlatform } from './support/fake-platform.ts'
import { RelayProcess } from './support/stage.ts'

const { privateKeyPem, publicKeyPem } = generateKeyPair()
const resources = new AsyncDisposableStack()
afterAll(() => resources.disposeAsync())
const folder = resources.use(await temporaryFolder()).path
const [oldVersion, newVersion] = ['1.9.0', '1.10.0']
const file = (version: string) => join(folder, `${version}.mjs`)
await Promise.all([oldVersion, newVersion].map((version) => buildRelay(file(version), { version, publicKeyPem })))
const newProgram = readFileSync(file(newVersion), 'utf8')

class Site implements AsyncDisposable {
  readonly #relays: RelayProcess[] = []
  readonly #token: string
  readonly platform: FakePlatform
  readonly stateFolder: string

  private constructor(platform: FakePlatform, stateFolder: string) {
    this.platform = platform
    this.stateFolder = stateFolder
    this.#token = platform.issueToken()
    platform.heartbeatIntervalSeconds = 1
  }

  static async open(): Promise<Site> {
    const platform = await FakePlatform.start()
    return new Site(platform, join(folder, platform.clusterId))
  }

  offer(text = newProgram, version = newVersion, signed = text): void {
    const { sha256 } = signRelay(Buffer.from(text), privateKeyPem)
    const { signature } = signRelay(Buffer.from(signed), privateKeyPem)
    this.platform.program = text
    this.platform.update = { id: 'update_1', version, sha256, signature }
  }

  start(environment: Record<string, string> = {}): RelayProcess {
    const relay = new RelayProcess(file(oldVersion), {
      args: ['--server', this.platform.url, '--state-dir', this.stateFolder],
      environment: { PLAT_ENROLLMENT_TOKEN: this.#token, ...environment },
    })
    this.#relays.push(relay)
    return relay
  }

  waitForReport(status: string): Promise<void> {
    return this.platform.until(() => this.platform.heartbeats.at(-1)?.update?.status === status)
  }

  async end(): Promise<void> {
    for (const relay of this.#relays.splice(0)) await relay.end('SIGTERM')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end()
    await this.platform.close()
  }
}

test.each([
  ['1.10.0', '1.9.9', true],
  ['2.0.0', '1.10.3', true],
  ['1.9.0', '1.10.0', false],
  ['1.9.0', '1.9.0', false],
])('%s is newer than %s: %s', (version, oldVersion, expected) => expect(isNewer(version, oldVersion)).toBe(expected))

test('a relay updates itself when no script runs, without signing off, and keeps the file that was started', async () => {
  await using site = await Site.open()
  const { platform } = site
  const relay = site.start()
  const slowJob = platform.addJob({ script: 'echo started; until [ -e go ]; do sleep 0.1; done' })
  await platform.until(() => slowJob.output !== '')
  site.offer()
  await relay.writes(/Relay 1.10.0 is verified/)
  const count = platform.heartbeats.length
  await platform.until(() => platform.heartbeats.length > count + 2)
  expect([platform.versions.at(-1), slowJob.completion]).toEqual([oldVersion, undefined])
  slowJob.isCancelled = true
  platform.notifyChange()
  await site.waitForReport('completed')
  expect([platform.versions.at(-1), platform.goodbyes]).toEqual([newVersion, []])
  expect(await relay.end('SIGTERM')).toBe(0)
  expect(platform.goodbyes).toEqual(['SIGTERM'])
  site.start()
  await relay.writes(/Starting relay|Relay 1.10.0 is in use/)
  const job = await platform.run({ script: 'echo out' })
  expect([job.output, platform.versions.at(-1)]).toEqual(['out\n', newVersion])
  expect(readFileSync(file(oldVersion), 'utf8')).toContain(`platform-relay ${oldVersion}`)
}, 60_000)

const runs = (rest: string) =>
  `if (process.argv.includes('--version')) console.log('platform-relay 1.10.0'); else ${rest}`
test.each([
  ['a file that the release key has not signed', newProgram, `${newProgram} `],
  ['a file with another version', 'console.log("platform-relay 1.11.0")', undefined],
  ['a file that ends', runs('process.exit(4)'), undefined],
  ['a file that hangs', runs('setInterval(() => {}, 1000)'), undefined],
] as const)(
  '%s is replaced by the previous one, and not tried again',
  async (_, text, signed) => {
    await using site = await Site.open()
    site.offer(text, newVersion, signed)
    const relay = site.start({ PLAT_RELAY_TRIAL_SECONDS: '2' })
    await site.waitForReport('rolledBack')
    const job = await site.platform.run({ script: 'echo out' })
    expect([job.output, new Set(site.platform.versions)]).toEqual(['out\n', new Set([oldVersion])])
    expect(relay.text.match(/Trying relay/g)?.length ?? 0).toBeLessThanOrEqual(1)
  },
  60_000,
)

test('a relay that cannot write its programs reports the reason, runs scripts, and updates itself afterwards', async () => {
  await using site = await Site.open()
  const { platform } = site
  const barrier = join(site.stateFolder, 'programs/state.json.draft')
  const untilReason = () =>
    platform.until(() => platform.heartbeats.at(-1)?.update?.reason?.startsWith('EISDIR') === true)
  mkdirSync(barrier, { recursive: true, mode: 0o700 })
  site.offer()
  const relay = site.start()
  await untilReason()
  const slowJob = platform.addJob({ script: 'echo started; until [ -e go ]; do sleep 0.1; done' })
  await platform.until(() => slowJob.output !== '')
  rmdirSync(barrier)
  await relay.writes(/Relay 1.10.0 is verified/)
  mkdirSync(barrier)
  slowJob.isCancelled = true
  platform.notifyChange()
  await untilReason()
  expect([(await platform.run({ script: 'echo out' })).output, platform.versions.at(-1)]).toEqual(['out\n', oldVersion])
  rmdirSync(barrier)
  await site.waitForReport('completed')

  await using otherSite = await Site.open()
  mkdirSync(join(otherSite.stateFolder, 'programs/state.json.draft'), { recursive: true, mode: 0o700 })
  otherSite.offer(newProgram, newVersion, `${newProgram} `)
  const rejectingRelay = otherSite.start()
  await rejectingRelay.writes(/could not be rejected/)
  expect((await otherSite.platform.run({ script: 'echo out' })).output).toBe('out\n')
}, 60_000)

test('a stored program that the release key has not signed does not start', async () => {
  await using site = await Site.open()
  const { platform, stateFolder } = site
  site.offer()
  await site.start().writes(/Relay 1.10.0 is verified/)
  await site.waitForReport('completed')
  await site.end()
  const stateFile = join(stateFolder, 'programs/state.json')
  const { active } = JSON.parse(readFileSync(stateFile, 'utf8'))
  const sha256 = createHash('sha256').update('').digest('hex')
  writeFileSync(join(stateFolder, `programs/${newVersion}-${sha256.slice(0, 16)}.mjs`), '')
  writeFileSync(stateFile, JSON.stringify({ active: { ...active, sha256 } }))
  platform.update = undefined
  site.start()
  expect([(await platform.run({ script: 'echo out' })).output, platform.versions.at(-1)]).toEqual(['out\n', oldVersion])
}, 60_000)

test('a platform that is down during the trial does not reject the new version', async () => {
  await using site = await Site.open()
  const { platform } = site
  platform.fatalVersion = newVersion
  site.offer()
  const relay = site.start({ PLAT_RELAY_TRIAL_SECONDS: '2' })
  await platform.until(() => platform.versions.includes(newVersion))
  const triedCount = platform.versions.length
  await platform.until(() => platform.versions.slice(triedCount).includes(oldVersion))
  platform.fatalVersion = undefined
  platform.failing.clear()
  await site.waitForReport('completed')
  expect(relay.text.match(/Trying relay/g)?.length).toBeGreaterThan(1)
}, 120_000)

test('killed before or after any write of an update, a relay continues, and the update completes', async () => {
  const preload = fileURLToPath(new URL('support/killed-at-write.mjs', import.meta.url))
  let writes = 0
  for (let at = 1; ; at += stride) {
    await using site = await Site.open()
    const countFile = join(folder, `count-${at}`)
    site.offer()
    const killEnvironment = { NODE_OPTIONS: `--import ${preload}`, KILL_AT: String(at), KILL_COUNT_FILE: countFile }
    const relay = site.start(killEnvironment)
    const completion = site.waitForReport('completed').then(() => 'completed')
    if ((await Promise.race([relay.exitCode, completion])) === 'completed') break
    writes = at
    site.start()
    await completion
    const job = await site.platform.run({ script: 'echo out' })
    expect([at, job.output, job.claimCount, site.platform.versions.at(-1)]).toEqual([at, 'out\n', 1, newVersion])
    expect(existsSync(join(site.stateFolder, 'programs/state.json'))).toBe(true)
  }
  // An update makes at least ten writes. The test kills the relay at every `stride`-th write.
  expect(writes).toBeGreaterThan(10 - stride)
}, 240_000)
