import { execFile, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Claim } from '@platform/contract/relay'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { canMount } from '../support/mounted-folder.ts'
import { isRunning, readWrittenLines } from '../support/script.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { waitFor } from '../support/wait-for.ts'
import { newId, signStatement } from './support/fake-platform.ts'
import { ended, Stage } from './support/stage.ts'

let stage: Stage
beforeAll(async () => {
  const environment = { PLAT_SECRET: 'private', LANG: 'C.UTF-8' }
  stage = await Stage.start({ args: ['--slots', '20'], environment })
})
afterAll(() => stage[Symbol.asyncDispose]())

describe.concurrent('a script', () => {
  test.for<[string, string, { stdout?: string; stderr?: string; exitCode?: number }]>([
    [
      'reports its output and its exit code',
      'echo out; echo err >&2; exit 7',
      { stdout: 'out\n', stderr: 'err\n', exitCode: 7 },
    ],
    [
      'runs with the interpreter of its shebang line',
      '#!/bin/cat\nnot a shell command\n',
      { stdout: '#!/bin/cat\nnot a shell command\n' },
    ],
    [
      'fails with 127 if its interpreter is missing',
      '#!/no/such/interpreter\n',
      { stderr: expect.stringContaining('/no/such/interpreter'), exitCode: 127 },
    ],
    ['that a signal ends reports 128 plus the signal number', 'kill -SEGV $$', { exitCode: 139 }],
    [
      'can open /dev/stdout and /dev/stderr',
      'echo out > /dev/stdout; echo err > /dev/stderr',
      { stdout: 'out\n', stderr: 'err\n' },
    ],
    ['has an empty standard input', 'cat; echo end', { stdout: 'end\n' }],
    [
      'can write a character in two parts',
      String.raw`printf '\360\237'; sleep 0.4; printf '\230\200'`,
      { stdout: '😀' },
    ],
    [
      'says how many background processes it left',
      'nohup sleep 1000 & sleep 1000 & printf out',
      { stdout: 'out', stderr: '\n[Background processes ended with the script: 2]\n' },
    ],
    ['may end shortly before its background processes', 'sleep 0.1 &', {}],
    [
      'names CR LF as the cause of its failure',
      '#!/bin/sh\r\nexit 0\r\n',
      { stderr: expect.stringMatching(/\[Lines of the script end with CR LF/), exitCode: 127 },
    ],
    [
      'names CR LF after its first line as the cause of its failure',
      'true\nfalse\r\n',
      { stderr: expect.stringMatching(/\[Lines of the script end with CR LF/), exitCode: 127 },
    ],
    [
      'names a byte order mark as the cause of its failure',
      '\uFEFF#!/bin/sh\nexit 3\n',
      { stderr: expect.stringMatching(/\[The script begins with a byte order mark/), exitCode: 3 },
    ],
    [
      'names a "#!" line after a blank line as the cause of its failure',
      '\n#!/bin/cat\nexit 4',
      { stderr: '[The "#!" line is not the first line, so the script ran with sh.]\n', exitCode: 4 },
    ],
  ])('%s', async ([, script, { stdout = '', stderr = '', exitCode = 0 }]) => {
    const job = await stage.platform.run({ script })
    expect([job.outputOf('stdout'), job.outputOf('stderr')]).toEqual([stdout, stderr])
    const nodes = [{ nodeId: stage.platform.nodeIds[0], exitCode }]
    expect(job.completion).toMatchObject({ outcome: 'exited', exitCode, nodes })
  })

  test('gets the ids of its job and node, but not the settings of the relay', async () => {
    const job = await stage.platform.run({ script: 'env | grep PLAT_ | sort; echo $LANG' })
    expect(job.output).toBe(`PLAT_JOB_ID=${job.id}\nPLAT_NODE_NAME=${hostname().slice(0, 64)}\nC.UTF-8\n`)
  })

  test.for([
    String.raw`head -c 100000 /dev/urandom | gzip | tee '%s'`,
    String.raw`printf 'a\377b\303' | tee '%s'`,
    String.raw`printf '\360\237' | tee '%s'; sleep 1.5; printf '\377x' | tee -a '%s'`,
  ])('has its output reported byte for byte: %s', async (script) => {
    const copy = stage.file(newId('copy'))
    const job = await stage.platform.run({ script: script.replaceAll('%s', copy) })
    expect(job.bytes().equals(readFileSync(copy))).toBe(true)
  })

  test('runs in an empty folder below --work-dir, which is removed afterwards', async () => {
    await using folder = await temporaryFolder()
    chmodSync(folder.path, 0o711)
    // File modes do not restrict root.
    const runAs = process.getuid?.() === 0 ? ['--run-as', 'daemon'] : []
    await using otherStage = await Stage.start({ args: ['--work-dir', folder.path, ...runAs] })
    const job = await otherStage.platform.run({
      script: 'pwd; ls -A; mkdir -p a/b; touch a/b/left-over; chmod -R a-w . a',
    })
    expect(job.output).toMatch(new RegExp(`^${folder.path}/.*\n$`))
    expect(readdirSync(join(job.output.trim(), '../..'))).toEqual([])
  })

  test('ends together with its child processes', async () => {
    const job = await stage.platform.run({ script: 'sleep 1000 & echo $!' })
    expect(job.completion).toMatchObject({ outcome: 'exited', exitCode: 0 })
    await ended(job.output)
  })

  test('completes although a daemon of another process group keeps its output open', async () => {
    const flag = stage.file('left')
    const job = await stage.platform.run({
      script: `setsid sh -c 'echo $$; touch ${flag}; exec sleep 1000' & while [ ! -e ${flag} ]; do sleep 0.05; done`,
    })
    const daemon = Number(job.output)
    expect(job.completion).toMatchObject({ outcome: 'exited', exitCode: 0 })
    expect(await isRunning(job.output.trim())).toBe(true)
    process.kill(daemon)
  })

  test('that exceeds its timeout ends with its child processes', async () => {
    const job = await stage.platform.run({ script: '(sleep 1000; true) & echo $!; sleep 1000', timeoutSeconds: 2 })
    expect(job.completion).toMatchObject({ outcome: 'timed_out', exitCode: null })
    expect(job.completion?.nodes).toEqual([{ nodeId: stage.platform.nodeIds[0], exitCode: null }])
    await ended(job.output)
  })

  test.for([
    'sh -c \'trap "sleep 1; echo cleaned; exit" TERM; while :; do sleep 0.1; done\' & echo $$; wait',
    'trap "for i in 1 2 3 4 5; do sleep 0.3; done; echo cleaned; exit" TERM; echo $$; while :; do sleep 0.1; done',
    '(trap "sleep 2; echo cleaned" TERM; echo $$; sleep 1000) & sleep 1000',
  ])('can clean up after a repeated cancellation: %s', async (script) => {
    const job = stage.platform.addJob({ script })
    await stage.platform.until(() => job.output !== '')
    job.isCancelled = true
    stage.platform.notifyChange()
    await stage.platform.until(() => job.completion !== undefined)
    expect(job.output).toMatch(/cleaned\n/)
    expect(job.completion).toMatchObject({ outcome: 'cancelled', exitCode: null })
  })

  test('that ignores SIGTERM is killed at its timeout', async () => {
    const script = "trap '' TERM; echo $$; while :; do sleep 1000; done"
    const job = await stage.platform.run({ script, timeoutSeconds: 1 })
    expect(job.completion).toMatchObject({ outcome: 'timed_out', exitCode: null })
    await ended(job.output)
  })

  test('without output can be cancelled', async () => {
    const job = stage.platform.addJob({ script: 'echo $$; sleep 1000' })
    await stage.platform.until(() => job.output !== '')
    job.isCancelled = true
    stage.platform.notifyChange()
    await stage.platform.until(() => job.completion !== undefined)
    expect(job.completion).toMatchObject({ outcome: 'cancelled', exitCode: null })
    await ended(job.output)
  })

  test('can be cancelled in the response to its output', async () => {
    const job = stage.platform.addJob({ script: 'echo $$; sleep 1000' })
    job.isCancelled = true
    await stage.platform.until(() => job.completion !== undefined)
    expect(job.completion?.outcome).toBe('cancelled')
    await ended(job.output)
  })

  test('whose job the server has finished is ended', async () => {
    const flag = stage.file('ended')
    const job = stage.platform.addJob({
      script: `echo $$; while [ ! -e ${flag} ]; do sleep 0.1; done; echo on; sleep 1000`,
    })
    await stage.platform.until(() => job.output !== '')
    job.isFinished = true
    writeFileSync(flag, '')
    await stage.platform.until(() => job.reports.length > 0)
    expect(job.reports[0]?.outcome).toBe('cancelled')
    await ended(job.output)
  })
})

test('runs more jobs than slots once each', async () => {
  const jobs = Array.from({ length: 50 }, (_, index) => stage.platform.addJob({ script: `exit ${index}` }))
  await stage.platform.until(() => jobs.every(({ completion }) => completion !== undefined))
  expect(jobs.map(({ completion }) => completion?.exitCode)).toEqual(jobs.map((_, index) => index))
  expect(jobs.every(({ claimCount, reports }) => claimCount === 1 && reports.length === 1)).toBe(true)
})

test('rejects a job for an unknown node', async () => {
  const job = await stage.platform.run({ script: 'true', targetNodeIds: ['node_00000000000000000000000000'] })
  expect(job.completion?.outcome).toBe('rejected')
})

test('does not run a job whose id is a path', async () => {
  const job = stage.platform.addJob({ script: 'true' }, '../../escape')
  await stage.platform.run({ script: 'true' })
  expect(job.reports).toEqual([])
})

const foreignKeys = generateKeyPairSync('ed25519')

const forgeries: Record<string, (claim: Claim, jobId: string) => Claim> = {
  'signed by another key': (claim, jobId) => ({
    ...claim,
    statement: sign(claim, { jobId }, { kid: stage.platform.signer.kid, privateKey: foreignKeys.privateKey }),
  }),
  'signed by an unknown key': (claim, jobId) => ({
    ...claim,
    statement: sign(claim, { jobId }, { kid: 'another-key', privateKey: foreignKeys.privateKey }),
  }),
  unsigned: (claim) => ({ ...claim, statement: `${claim.statement.split('.').slice(0, 2).join('.')}.` }),
  expired: (claim, jobId) => ({ ...claim, statement: sign(claim, { jobId, exp: Date.now() / 1000 - 60 }) }),
  'for another cluster': (claim, jobId) => ({ ...claim, statement: sign(claim, { jobId, clusterId: newId('clus') }) }),
  'for another job': (claim) => ({ ...claim, statement: sign(claim, { jobId: newId('job') }) }),
  'for another payload': (claim) => ({ ...claim, payload: { ...claim.payload, timeoutSeconds: 1 } }),
  'of a payload without a script': (claim, jobId) => ({
    ...claim,
    statement: sign({ ...claim, payload: { command: 'x' } }, { jobId }),
    payload: { command: 'x' },
  }),
}

function sign(
  { payload }: Pick<Claim, 'payload'>,
  statement: { jobId: string; clusterId?: string; exp?: number },
  signer: Parameters<typeof signStatement>[1] = stage.platform.signer,
): string {
  return signStatement({ clusterId: stage.platform.clusterId, payload, ...statement }, signer)
}

test.for(Object.keys(forgeries))('rejects a job whose statement is %s', async (name) => {
  const ledger = stage.file(name)
  const job = stage.platform.addJob({ script: `echo ran >> '${ledger}'` })
  job.tamper = (claim: Claim) => forgeries[name]!(claim, job.id)
  await stage.platform.until(() => job.completion !== undefined)
  expect(job.completion).toMatchObject({ outcome: 'rejected', exitCode: null, nodes: [] })
  expect(existsSync(ledger)).toBe(false)
})

test('rejects a replayed job', async () => {
  const ledger = stage.file('ledger')
  const job = await stage.platform.run({ script: `echo ran >> ${ledger}` })
  job.offerAgain()
  stage.platform.notifyChange()
  await stage.platform.until(() => job.completion !== undefined)
  expect(job.reports.map(({ outcome }) => outcome)).toEqual(['exited', 'rejected'])
  expect(readFileSync(ledger, 'utf8')).toBe('ran\n')
})

test('a relay killed before it records a process leaves no process, and runs no part of the script', async () => {
  await using folder = await temporaryFolder()
  const trace = join(folder.path, 'trace')
  const program = fileURLToPath(new URL('support/killed-at-start.ts', import.meta.url))
  const relay = spawn(process.execPath, [program, folder.path, `touch '${trace}'; sleep 600`], { stdio: 'inherit' })
  expect(await once(relay, 'exit')).toEqual([null, 'SIGKILL'])
  const [leader = ''] = await readWrittenLines(join(folder.path, 'leader'))
  await waitFor('the end of the process', async () => !(await isRunning(leader)))
  expect(existsSync(trace)).toBe(false)
})

test('runs scripts with twelve free file descriptors', async () => {
  await using folder = await temporaryFolder()
  const program = fileURLToPath(new URL('support/few-descriptors.ts', import.meta.url))
  const command = ['-c', 'ulimit -n 100; exec "$0" "$@"', process.execPath, program, folder.path]
  const { stdout } = await promisify(execFile)('sh', command)
  expect(stdout.trim().split('\n')).toEqual(Array.from({ length: 11 }, (_, index) => `job_${index + 1}`))
  expect(readdirSync(folder.path)).toEqual([])
})

test.skipIf(!canMount).each([
  ['in /dev/shm if it has the sticky bit', '1777', true],
  ['elsewhere if other users can replace files in /dev/shm', '777', false],
])('creates the pipes of scripts %s', async (_, mode, isInMemory) => {
  await using folder = await temporaryFolder()
  const fifo = new URL('../../packages/relay/src/executor/fifo.ts', import.meta.url)
  const program = `
    import { FifoPair } from '${fifo.href}'
    new FifoPair('${folder.path}', { isOther: false })
    process.exit()`
  // The mount may hide the folder. Creating files changes the time of their folder.
  const script = `mount -t tmpfs -o mode=${mode} tmpfs /dev/shm && mkdir -p '${folder.path}' &&
    touch -d @0 /dev/shm '${folder.path}' &&
    "$0" --input-type=module -e "$1" && stat -c %Y /dev/shm '${folder.path}'`
  const { stdout } = await promisify(execFile)('unshare', ['-m', 'sh', '-c', script, process.execPath, program])
  expect(
    stdout
      .trim()
      .split('\n')
      .map((seconds) => seconds !== '0'),
  ).toEqual([isInMemory, !isInMemory])
})
