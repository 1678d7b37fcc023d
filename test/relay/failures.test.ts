import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { canMount, mountedFolder } from '../support/mounted-folder.ts'
import { type CallName, type FakePlatform, newId, type Reply } from './support/fake-platform.ts'
import { ended, Stage } from './support/stage.ts'

let stage: Stage

const start = async (...settings: Parameters<typeof Stage.start>) => (stage = await Stage.start(...settings))

async function startJob(prefix = '') {
  await start()
  const job = stage.platform.addJob({ script: `${prefix}echo $$; sleep 1000` })
  await stage.platform.until(() => job.output !== '')
  return job
}

async function restartAfterKill(environment: Record<string, string> = {}) {
  await stage.relay.end('SIGKILL')
  stage.startRelay({ environment })
}

afterEach(() => stage[Symbol.asyncDispose]())

test('repeats an enrollment with a lost response with the same key', async () => {
  await start({ prepare: (platform) => platform.lostResponses.add('enroll') })
  await stage.platform.run({ script: 'true' })
  expect(stage.platform.enrollments).toHaveLength(2)
  expect(stage.platform.enrollments[0]?.publicKey).toEqual(stage.platform.enrollments[1]?.publicKey)
})

test('repeats an enrollment after a kill with the same key, and continues without a token', async () => {
  await start({ prepare: (platform) => platform.lostResponses.add('enroll') })
  await stage.platform.until(() => stage.platform.enrollments.length === 1)
  await restartAfterKill()
  await stage.platform.run({ script: 'true' })
  expect(new Set(stage.platform.enrollments.map(({ publicKey }) => publicKey.x)).size).toBe(1)
  await stage.relay.end('SIGKILL')
  const count = stage.platform.enrollments.length
  stage.startRelay({ environment: { PLAT_ENROLLMENT_TOKEN: '' } })
  await stage.platform.run({ script: 'true' })
  expect(stage.platform.enrollments).toHaveLength(count)
})

test('a lost response to any call of a job causes no loss and no repetition', async () => {
  await start()
  const ledger = stage.file('ledger')
  for (const call of ['claim', 'output', 'complete'] as const) stage.platform.lostResponses.add(call)
  const job = await stage.platform.run({ script: `echo ran >> ${ledger}; echo once; sleep 1; echo twice` })
  await stage.platform.until(() => job.reports.length === 2)
  expect(job.claimCount).toBe(2)
  expect(job.output).toBe('once\ntwice\n')
  expect(job.reports[1]).toEqual(job.reports[0])
  expect(readFileSync(ledger, 'utf8')).toBe('ran\n')
})

test('delivers a result when the server is available again', async () => {
  await start()
  for (const call of ['output', 'complete'] as const) stage.platform.failing.add(call)
  const job = stage.platform.addJob({ script: 'echo late' })
  await stage.platform.until(() => stage.platform.calls.filter((name) => name === 'complete').length === 3)
  stage.platform.failing.clear()
  await stage.platform.until(() => job.completion !== undefined)
  expect(job.output).toBe('late\n')
})

test.for<[string, Reply]>([
  ['a success', { status: 200, body: { status: 'ok' } }],
  ['the result of another job', { status: 200, body: { jobId: newId('job'), status: 'Completed' } }],
  ['a success without content', { status: 204 }],
  ['an error', { status: 403, body: { error: 'forbidden', message: 'Sign in first.' } }],
])(
  'a response with %s that is not from the platform changes nothing, and the request is repeated',
  async ([, reply]) => {
    await start({ prepare: (platform) => void (platform.claimsWithHeartbeats = false) })
    const { platform } = stage
    for (const call of ['heartbeat', 'claim', 'output', 'complete'] as const) platform.foreignReplies.set(call, reply)
    const job = await platform.run({ script: 'echo once; sleep 1; echo twice' })
    expect(platform.foreignReplies).toEqual(new Map())
    expect([job.output, job.completion?.exitCode, job.claimCount]).toEqual(['once\ntwice\n', 0, 1])
    await stage.relay.writes(/check --server, proxies, and whether this network requires a sign-in/)
  },
)

test('a relay that a sign-in page answers instead of the platform does not enroll, and says what to check', async () => {
  const prepare = (platform: FakePlatform) => platform.foreignReplies.set('enroll', { status: 200, body: {} })
  await start({ prepare })
  await stage.relay.writes(/is not a platform. Check --server, and whether this network requires a sign-in/)
  expect(await stage.relay.exitCode).toBe(1)
})

test.for([
  ['it succeeds', () => {}, [1, 1], 1],
  ['its response is lost', ({ lostResponses }: FakePlatform) => lostResponses.add('completions'), [4, 1], 2],
  ['it fails', ({ failing }: FakePlatform) => failing.add('completions'), [4, 1], 1],
] as const)(
  'results that become known during a request share the next request, and all arrive if %s',
  async ([, prepare, calls, reports]) => {
    await start({ prepare })
    const { platform } = stage
    const { promise, resolve } = Promise.withResolvers<void>()
    platform.held.set('complete', promise)
    await platform.run({ script: 'true' })
    const jobs = [1, 2, 3].map((code) => platform.addJob({ script: `echo ${code}; exit ${code}` }))
    const journal = () => readFileSync(`${stage.stateFolder}/journal.jsonl`, 'utf8')
    await vi.waitFor(() => expect(journal().match(/"state":"finished"/g)).toHaveLength(4), { timeout: 20_000 })
    resolve()
    await vi.waitFor(() => expect(journal().match(/"state":"done"/g)).toHaveLength(4), { timeout: 20_000 })
    expect(jobs.map(({ completion, output }) => [completion?.exitCode, output])).toEqual([
      [1, '1\n'],
      [2, '2\n'],
      [3, '3\n'],
    ])
    expect(jobs.map((job) => job.reports.length)).toEqual([reports, reports, reports])
    const countOf = (call: CallName) => platform.calls.filter((name) => name === call).length
    expect([countOf('complete'), countOf('completions')]).toEqual(calls)
  },
)

test('corrects a clock that is ten minutes off', async () => {
  await start({ prepare: (platform) => void (platform.guard.skewSeconds = 600) })
  const job = await stage.platform.run({ script: 'true' })
  expect(job.completion?.outcome).toBe('exited')
})

test('a relay that is rejected without a revocation keeps trying', async () => {
  await start({ prepare: (platform) => void (platform.guard.rejectsAll = true) })
  await stage.platform.until(() => stage.platform.rejections.length >= 5)
  stage.platform.guard.rejectsAll = false
  await stage.platform.run({ script: 'true' })
})

test.for([
  [['b'], 2, /names none of the enrolled nodes \(a\)/],
  [['A', 'b'], 2, /names none of the enrolled nodes \(a\)/],
  [['a', 'c'], undefined, /Node c is not enrolled/],
] as const)('a restart with the nodes %j: exit code %s', async ([names, exitCode, message]) => {
  const nodesFile = (nodes: readonly string[]) => {
    const path = stage.file(nodes.join())
    writeFileSync(path, JSON.stringify({ nodes: nodes.map((name) => ({ name, executor: 'local' })) }))
    return ['--nodes', path]
  }
  await start()
  await stage.relay.end('SIGKILL')
  const token = stage.platform.issueToken()
  stage.startRelay({ args: nodesFile(['a']), environment: { PLAT_ENROLLMENT_TOKEN: token } })
  await stage.platform.run({ script: 'true' })
  await stage.relay.end('SIGKILL')
  const relay = stage.startRelay({ args: nodesFile(names), environment: { PLAT_ENROLLMENT_TOKEN: token } })
  await relay.writes(message)
  if (exitCode !== undefined) expect(await relay.exitCode).toBe(exitCode)
})

test.for(['/proc/state', '/dev/null/state', '/sys/kernel/state'])(
  'the state folder %s: exit code 6',
  async (folder) => {
    await start({ args: ['--state-dir', folder] })
    await stage.relay.writes(/The state folder .* cannot be used/)
    expect(await stage.relay.exitCode).toBe(6)
  },
)

test.skipIf(!canMount)('a full state folder: exit code 6, and no lock remains', async () => {
  await using disk = await mountedFolder('64k')
  writeFileSync(join(disk.path, 'full'), Buffer.alloc(60 * 1024))
  await start({ args: ['--state-dir', disk.path] })
  await stage.relay.writes(/The state folder .* cannot be used: ENOSPC/)
  expect(await stage.relay.exitCode).toBe(6)
  expect(readdirSync(disk.path)).toEqual(['full'])
})

test.skipIf(process.getuid?.() !== 0)(
  '--run-as: a script cannot read the key and has the user of its own',
  async () => {
    await start({ args: ['--run-as', 'daemon'] })
    onTestFinished(() => rmSync(`/var/lib/platform-relay-${stage.platform.relayId}`, { recursive: true, force: true }))
    const job = await stage.platform.run({
      script: `id -un; echo $USER; touch here; cat ${stage.stateFolder}/*.pem ${stage.stateFolder}/identity.json 2>&1`,
    })
    expect(job.output).toMatch(/^daemon\ndaemon\n.*Permission denied\n/)
    expect(job.output).not.toContain('PRIVATE KEY')
    expect(stage.platform.heartbeats.at(-1)).toMatchObject({ scriptsIsolated: true })
  },
)

test('a revoked relay ends with advice', async () => {
  const job = await startJob()
  stage.platform.guard.revoke(stage.platform.relayId)
  stage.platform.heartbeatIntervalSeconds = 1
  job.isCancelled = true
  stage.platform.notifyChange()
  expect(await stage.relay.exitCode).toBe(4)
  await stage.relay.writes(/Issue a new token/)
})

test('works with an earlier platform, without a channel and with a request for each claim', async () => {
  const prepare = (platform: FakePlatform) => {
    platform.hasChannel = false
    platform.claimsWithHeartbeats = false
    platform.heartbeatIntervalSeconds = 1
  }
  await start({ prepare })
  await stage.platform.until(() => stage.platform.heartbeats.length === 3)
  const job = await stage.platform.run({ script: 'echo out; exit 3' })
  expect([job.completion?.exitCode, job.completion?.output, job.output]).toEqual([3, undefined, 'out\n'])
  expect(stage.platform.rejections).toEqual([])
})

test('an unknown enrollment token ends the relay with advice', async () => {
  await start({ environment: { PLAT_ENROLLMENT_TOKEN: 'enroll_none.secret' } })
  expect(await stage.relay.exitCode).toBe(3)
  await stage.relay.writes(/Issue a new one/)
})

test('a relay enrolls once the organisation is no longer at its limit of clusters', async () => {
  await start({ prepare: (platform) => (platform.enrollmentsOverLimit = 1) })
  await stage.relay.writes(/maximum number of clusters/)
  await stage.relay.writes(/Connected/)
})

test('a second relay needs its own token and its own state folder, which only its owner can read', async () => {
  await start()
  await stage.relay.writes(/Connected/)
  const key = join(stage.stateFolder, `${stage.token.split('.')[0]}.key.pem`)
  expect([stage.stateFolder, key].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o600])
  const firstRelay = stage.relay
  const otherState = stage.startRelay({ args: ['--state-dir', stage.file('other')] })
  expect(await otherState.exitCode).toBe(3)
  await otherState.writes(/enrollment_token_used/)
  const sameState = stage.startRelay()
  expect(await sameState.exitCode).toBe(5)
  await sameState.writes(/Another relay/)
  await stage.platform.run({ script: 'true' })
  await firstRelay.end('SIGKILL')
})

test('reports a script that a kill ended as interrupted, and does not repeat it', async () => {
  await start()
  const ledger = stage.file('ledger')
  const job = stage.platform.addJob({ script: `echo ran >> ${ledger}; echo $$; sleep 1000` })
  await stage.platform.until(() => job.output !== '')
  await restartAfterKill()
  await stage.platform.until(() => job.completion !== undefined)
  expect(job.completion).toMatchObject({ outcome: 'interrupted', exitCode: null })
  await ended(job.output)
  await stage.platform.run({ script: 'true' })
  expect(readFileSync(ledger, 'utf8')).toBe('ran\n')
  expect(stage.platform.enrollments).toHaveLength(1)
})

test('reports a job with an unfinished claim as interrupted after a kill', async () => {
  await start()
  const ledger = stage.file('ledger')
  stage.platform.lostResponses.add('claim')
  const job = stage.platform.addJob({ script: `echo ran >> ${ledger}` })
  await stage.platform.until(() => job.claimCount === 1)
  stage.platform.failing.add('heartbeat')
  await stage.relay.end('SIGKILL')
  stage.platform.failing.delete('heartbeat')
  stage.startRelay()
  await stage.platform.until(() => job.completion !== undefined)
  expect(job.completion?.outcome).toBe('interrupted')
  expect(existsSync(ledger)).toBe(false)
})

test('delivers an undelivered result completely after a kill', async () => {
  await start()
  stage.platform.failing.add('output')
  const journal = () => readFileSync(`${stage.stateFolder}/journal.jsonl`, 'utf8')
  const job = stage.platform.addJob({ script: 'seq 1 100000; exit 3' })
  await vi.waitFor(() => expect(journal()).toContain(`"state":"finished","jobId":"${job.id}"`), { timeout: 20_000 })
  await stage.relay.end('SIGKILL')
  stage.platform.failing.delete('output')
  stage.startRelay()
  await stage.platform.until(() => job.completion !== undefined)
  expect(job.completion).toMatchObject({ outcome: 'exited', exitCode: 3 })
  expect(job.output).toBe(Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join(''))
})

test.for([
  ['truncated', (bytes: Buffer) => bytes.subarray(0, -100)],
  ['overwritten with random bytes', ({ length }: Buffer) => randomBytes(length)],
  ['replaced by other JSON', () => Buffer.from('{}')],
] as const)(
  'a stored output that is %s is set aside, and all results are delivered after a kill',
  async ([, damage]) => {
    await start()
    const { platform, stateFolder } = stage
    platform.failing.add('output')
    const jobs = [1, 2, 3].map((code) => platform.addJob({ script: `seq 1 20000; exit ${code}` }))
    const journal = () => readFileSync(`${stateFolder}/journal.jsonl`, 'utf8')
    await vi.waitFor(() => expect(journal().match(/"state":"finished"/g)).toHaveLength(3), { timeout: 20_000 })
    await stage.relay.end('SIGKILL')
    const path = join(stateFolder, 'spool', `${jobs[0]!.id}.json`)
    const bytes = damage(readFileSync(path))
    writeFileSync(path, bytes)
    platform.failing.delete('output')
    stage.startRelay()
    await platform.until(() => jobs.every(({ completion }) => completion !== undefined))
    expect(jobs.map(({ completion }) => completion?.exitCode)).toEqual([1, 2, 3])
    const output = Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join('')
    expect(jobs.map((job) => job.output === output)).toEqual([false, true, true])
    await stage.relay.writes(new RegExp(`${path} is damaged, .*moved to ${path}\\.damaged; delete it`))
    expect(readFileSync(`${path}.damaged`)).toEqual(bytes)
  },
)

test.for(['identity.json', 'TOKEN.key.pem', 'journal.jsonl'])(
  'a relay whose %s is damaged does not start, and names the file and the next step',
  async (name) => {
    await start()
    await stage.platform.run({ script: 'true' })
    await stage.relay.end('SIGKILL')
    const path = join(stage.stateFolder, name.replace('TOKEN', stage.token.split('.')[0]!))
    writeFileSync(path, 'damaged\n\n'.repeat(3))
    const relay = stage.startRelay()
    expect(await relay.exitCode).toBe(6)
    await relay.writes(new RegExp(`${path} is damaged.* enroll again with another --state-dir`, 'i'))
  },
)

test('repeats a result with a lost response after a kill', async () => {
  await start()
  stage.platform.lostResponses.add('complete')
  const job = stage.platform.addJob({ script: 'exit 4' })
  await stage.platform.until(() => job.reports.length === 1)
  await restartAfterKill()
  await stage.platform.until(() => job.reports.length >= 2)
  expect(new Set(job.reports.map(({ exitCode }) => exitCode))).toEqual(new Set([4]))
  expect(job.claimCount).toBe(1)
})

test('a new token enrolls the relay again in the same state folder', async () => {
  await start()
  await stage.platform.run({ script: 'true' })
  await restartAfterKill({ PLAT_ENROLLMENT_TOKEN: stage.platform.issueToken() })
  await stage.platform.run({ script: 'true' })
  const [firstEnrollment, secondEnrollment] = stage.platform.enrollments
  expect(secondEnrollment?.publicKey.x).not.toBe(firstEnrollment?.publicKey.x)
})

test('SIGTERM ends the scripts, reports them as interrupted and sends a goodbye', async () => {
  const job = await startJob("trap '' TERM; ")
  expect(await stage.relay.end('SIGTERM')).toBe(0)
  expect(job.completion).toMatchObject({ outcome: 'interrupted', exitCode: null })
  expect(stage.platform.goodbyes).toEqual(['SIGTERM'])
  await ended(job.output)
})

test('SIGINT ends an idle relay', async () => {
  await start()
  await stage.relay.writes(/Connected/)
  expect(await stage.relay.end('SIGINT')).toBe(0)
  expect(stage.platform.goodbyes).toEqual(['SIGINT'])
})

test('a second signal ends a relay that waits for its server', async () => {
  await startJob()
  stage.platform.failing.add('complete')
  const stopping = stage.relay.end('SIGTERM')
  await stage.platform.until(() => stage.platform.calls.includes('complete'))
  expect(await stage.relay.end('SIGTERM')).toBe(143)
  await stopping
})

test('heartbeats report running jobs and free slots', async () => {
  await start({ prepare: (platform) => void (platform.heartbeatIntervalSeconds = 1) })
  const job = stage.platform.addJob({ script: 'echo $$; sleep 1000' })
  await stage.platform.until(() => stage.platform.heartbeats.some(({ running }) => running.includes(job.id)))
  const heartbeat = stage.platform.heartbeats.find(({ running }) => running.includes(job.id))
  expect(heartbeat?.freeSlots).toBe(3)
  expect(heartbeat?.nodes).toEqual([{ id: stage.platform.nodeIds[0], status: 'Online' }])
  await stage.relay.end('SIGTERM')
  await ended(job.output)
})
