import { generateKeyPairSync, sign } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { OutputReport } from '@platform/contract/relay'
import { retryDelayMs } from '@platform/relay/backoff'
import { Backlog, maxRequestBytes, type Piece } from '@platform/relay/backlog'
import type { Client } from '@platform/relay/client'
import { relayUser, type ScriptUser } from '@platform/relay/executor/user'
import { clearWorkFolder, ensureWorkFolder } from '@platform/relay/executor/work-folder'
import { RetryableError } from '@platform/relay/http'
import type { EnrolledNode, Identity } from '@platform/relay/identity'
import { Journal } from '@platform/relay/journal'
import type { CompletionRecord, Entry } from '@platform/relay/journal-entry'
import { signJws, verifyJws } from '@platform/relay/jws'
import { lockState } from '@platform/relay/lock'
import { Output } from '@platform/relay/output'
import { isolatesScripts } from '@platform/relay/relay'
import { type Leader, stampOf } from '@platform/relay/process-group'
import { Storage } from '@platform/relay/storage'
import { Upload } from '@platform/relay/upload'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { canMount, mountedFolder } from '../support/mounted-folder.ts'
import { Program } from '../support/program.ts'
import { waitFor } from '../support/wait-for.ts'

let path: string
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'relay-'))
  path = join(folder, 'journal.jsonl')
})

afterEach(() => {
  vi.useRealTimers()
  rmSync(folder, { recursive: true })
})

const completion: CompletionRecord = { outcome: 'exited', exitCode: 0, nodes: [] }
const claiming: Entry = { state: 'claiming', jobId: 'job_1', claimKey: 'key' }
const startedEntry = (leaders: Leader[]): Entry => ({ state: 'started', jobId: 'job_1', leaseId: 'lease_1', leaders })
const finishedEntry: Entry = { state: 'finished', jobId: 'job_1', leaseId: 'lease_1', ending: completion }
const daysAgo = (days: number) => Date.now() - days * 24 * 3_600_000

test('a reopened journal has unfinished and finished jobs', () => {
  const journal = new Journal(path)
  for (const record of [claiming, startedEntry([])]) journal.append(record)
  journal.append({ state: 'spawned', jobId: 'job_1', leader: { pid: 7, stamp: 'now' } })
  journal.close()
  const reopenedJournal = new Journal(path)
  expect(reopenedJournal.unfinishedEntries()).toEqual([startedEntry([{ pid: 7, stamp: 'now' }])])
  reopenedJournal.append(finishedEntry)
  expect(reopenedJournal.unfinishedEntries()).toEqual([finishedEntry])
  reopenedJournal.append({ state: 'done', jobId: 'job_1', atMs: Date.now() })
  reopenedJournal.close()
  const lastJournal = new Journal(path)
  expect([lastJournal.has('job_1'), lastJournal.unfinishedEntries()]).toEqual([true, []])
})

test('forgets a rejected claim', () => {
  const journal = new Journal(path)
  journal.append(claiming)
  journal.append({ state: 'dropped', jobId: 'job_1' })
  expect(journal.has('job_1')).toBe(false)
})

test('drops a partial last record', () => {
  const journal = new Journal(path)
  journal.append(claiming)
  journal.close()
  appendFileSync(path, '{"state":"done","jobId":"jo')
  const reopenedJournal = new Journal(path)
  expect(reopenedJournal.unfinishedEntries()).toEqual([claiming])
  reopenedJournal.append({ state: 'done', jobId: 'job_1', atMs: Date.now() })
  reopenedJournal.close()
  expect(new Journal(path).unfinishedEntries()).toEqual([])
})

test('rejects a journal that is damaged before its end', () => {
  writeFileSync(path, `${JSON.stringify(claiming)}\ngarbage\n${JSON.stringify(finishedEntry)}\n`)
  expect(() => new Journal(path)).toThrow(/damaged in line 2/)
})

test('remembers jobs for 30 days', () => {
  const lines = [
    { state: 'done', jobId: 'job_30', atMs: daysAgo(30) },
    { state: 'done', jobId: 'job_40', atMs: daysAgo(40) },
    { ...finishedEntry, jobId: 'job_unreported' },
  ]
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const journal = new Journal(path)
  expect(journal.has('job_30')).toBe(true)
  expect(journal.has('job_40')).toBe(false)
  expect(journal.unfinishedEntries()).toHaveLength(1)
})

test('compacts the journal', () => {
  const journal = new Journal(path)
  for (let count = 0; count < 800; count++) {
    journal.append({ ...claiming, jobId: 'job_again' })
    journal.append({ state: 'dropped', jobId: 'job_again' })
  }
  expect(statSync(path).size).toBeLessThan(100_000)
  expect(readFileSync(path, 'utf8').split('\n').length).toBeLessThan(1002)
})

test('locks a folder until the lock is released', () => {
  const unlock = lockState(folder)
  expect(() => lockState(folder)).toThrow(/Another relay/)
  unlock()
  lockState(folder)()
  expect(readdirSync(folder)).toEqual([])
})

test.for([JSON.stringify({ pid: process.pid, stamp: 'of an earlier process' }), ''])(
  'takes over the lock %j of a dead process',
  (lock) => {
    writeFileSync(join(folder, 'lock'), lock)
    lockState(folder)()
    expect(readdirSync(folder)).toEqual([])
  },
)

test('takes over the lock of a zombie', async () => {
  // The shell becomes a program that does not wait for its child.
  await using parent = new Program('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], { cwd: folder, env: process.env })
  await parent.writes(/\n/)
  const pid = Number(parent.text)
  const isZombie = () => readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  await waitFor('the zombie', () => Promise.resolve(isZombie()))
  writeFileSync(join(folder, 'lock'), JSON.stringify({ pid, stamp: stampOf(pid) }))
  lockState(folder)()
  expect(readdirSync(folder)).toEqual([])
})

test('claims no jobs while a folder cannot be written or is full', () => {
  // No space is available below /proc.
  expect(
    [[folder], [folder, '/proc'], [join(folder, 'none')]].map((folders) => new Storage(folders).isWritable),
  ).toEqual([true, false, false])
})

test('creates a removed work folder again, and rejects one of another user', () => {
  const parent = join(folder, 'work')
  const storage = new Storage([folder, parent], () => ensureWorkFolder(parent, relayUser()))
  expect(storage.isWritable).toBe(true)
  rmSync(parent, { recursive: true })
  expect(storage.isWritable).toBe(true)
  if (process.getuid?.() !== 0) return
  chownSync(parent, 1, 1)
  expect(storage.isWritable).toBe(false)
})

test('removes read-only folders, broken links and hidden files that earlier scripts left', async () => {
  const parent = join(folder, 'work')
  ensureWorkFolder(parent, relayUser())
  for (const name of ['one', 'two', '.three']) mkdirSync(join(parent, name, 'a'), { recursive: true })
  writeFileSync(join(parent, 'one/a/script'), 'echo secret', { mode: 0o400 })
  symlinkSync('missing', join(parent, 'two/a/link'))
  symlinkSync(folder, join(parent, '.three/a/link'))
  for (const name of ['one/a', 'one', 'two/a', 'two', '.three']) chmodSync(join(parent, name), 0o500)
  await clearWorkFolder(parent)
  expect([readdirSync(parent), readdirSync(folder)]).toEqual([[], ['work']])
})

test.skipIf(!canMount)('reports a folder of a script that it cannot remove', async () => {
  const parent = join(folder, 'work')
  await using mount = await mountedFolder('1m', join(parent, 'script/mounted'))
  const output = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  await clearWorkFolder(parent)
  const text = output.mock.calls.join('')
  output.mockRestore()
  expect(text).toMatch(/The folder .*\/work\/script of a script could not be removed: .* Remove it, or restart/)
  expect(existsSync(mount.path)).toBe(true)
})

function drain(backlog: Backlog): Piece[] {
  backlog.complete()
  const pieces: Piece[] = []
  for (let takenPieces = backlog.take(); takenPieces.length > 0; takenPieces = backlog.take())
    pieces.push(...takenPieces)
  return pieces
}

function backlogOf(...writes: [Piece['stream'], string | Uint8Array][]): Backlog {
  const backlog = new Backlog()
  for (const [stream, bytes] of writes) backlog.append('node', stream, Buffer.from(bytes))
  return backlog
}

const textOf = (pieces: Piece[]): string => Buffer.concat(pieces.map(({ bytes }) => bytes)).toString()

test('splits output into requests of the maximum size between characters', () => {
  const text = 'a€😀'.repeat(20_000)
  const backlog = backlogOf(['stdout', text])
  const sizes: number[] = []
  let received = ''
  for (let takenPieces = backlog.take(); takenPieces.length > 0; takenPieces = backlog.take()) {
    sizes.push(Buffer.byteLength(textOf(takenPieces)))
    received += textOf(takenPieces)
  }
  expect(received).toBe(text)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(maxRequestBytes)
})

test('keeps the order of arrival across streams, and joins writes of one stream', () => {
  const backlog = backlogOf(['stdout', '1'], ['stdout', '2'], ['stderr', '3'], ['stdout', '4'])
  expect(backlog.take().map(({ stream, bytes }) => [stream, bytes.toString()])).toEqual([
    ['stdout', '12'],
    ['stderr', '3'],
    ['stdout', '4'],
  ])
})

test.for([
  ['😀', 1],
  ['😀', 3],
  ['€', 2],
  ['é', 1],
] as const)('holds the first bytes of %s back until the character is complete', ([character, length]) => {
  const bytes = Buffer.from(character)
  const backlog = backlogOf(['stdout', Buffer.concat([Buffer.from('a'), bytes.subarray(0, length)])])
  expect(textOf(backlog.take())).toBe('a')
  expect(backlog.take()).toEqual([])
  backlog.append('node', 'stderr', Buffer.from('b'))
  expect(textOf(backlog.take())).toBe('b')
  backlog.append('node', 'stdout', bytes.subarray(length))
  expect(textOf(backlog.take())).toBe(character)
})

test.for(['stdout', 'stderr'] as const)(
  'drops whole lines and counts their bytes, with every second line on %s',
  (other) => {
    const backlog = new Backlog()
    const lines = Array.from({ length: 300_000 }, (_, index) => `${index}\n`)
    lines.forEach((line, index) => backlog.append('node', index % 2 ? other : 'stdout', Buffer.from(line)))
    expect(backlog.costBytes).toBeLessThan(1024 * 1024 + 2 * maxRequestBytes)
    const pieces = drain(backlog)
    const gaps = pieces.filter(({ droppedBytes }) => droppedBytes > 0)
    expect(gaps).toHaveLength(1)
    const [head, tail] = [pieces.slice(0, pieces.indexOf(gaps[0]!)), pieces.slice(pieces.indexOf(gaps[0]!))]
    expect(lines.join('').startsWith(textOf(head))).toBe(true)
    expect(lines.join('').endsWith(textOf(tail))).toBe(true)
    expect(textOf(head)).toMatch(/\n$/)
    expect(lines).toContain(textOf(tail).split(/(?<=\n)/)[0])
    expect(textOf(pieces).length + gaps[0]!.droppedBytes).toBe(lines.join('').length)
  },
)

test.for<[string, { everyMs: number; streams: Piece['stream'][]; text: string }]>([
  ['yes', { everyMs: 5, streams: ['stdout'], text: 'y\n'.repeat(420) }],
  ['short writes to both streams in turns', { everyMs: 1, streams: ['stdout', 'stderr'], text: '.\n' }],
  ['a slow dripper', { everyMs: 100, streams: ['stdout'], text: '.' }],
])('sends the output of %s in requests of 64 KiB, or one a second', async ([, { everyMs, streams, text }]) => {
  vi.useFakeTimers()
  const sizes: number[] = []
  const deliver: Client['deliver'] = async ({ body }) => {
    const { chunks = [] } = OutputReport.parse(body)
    // A chunk counts 100 bytes in addition to its data.
    sizes.push(chunks.reduce((bytes, { data }) => bytes + 100 + data.length, 0))
    return { status: 200, headers: {}, body: {} }
  }
  const lease = { jobId: 'job_1', leaseId: 'lease_1' }
  const upload = new Upload({
    lease,
    output: new Output(),
    client: { deliver },
    keepsLast: () => false,
    onCancel: () => {},
  })
  upload.start(new AbortController().signal)
  for (let atMs = 0; atMs < 10_000; atMs += everyMs) {
    for (const stream of streams) upload.append('node_00000000000000000000000000', stream, Buffer.from(text))
    await vi.advanceTimersByTimeAsync(everyMs)
  }
  const writtenBytes = (10_000 / everyMs) * streams.length * (100 + text.length)
  expect(sizes.filter((bytes) => bytes < maxRequestBytes - 100 - text.length).length).toBeLessThanOrEqual(10)
  expect(sizes.length).toBeLessThanOrEqual(10 + writtenBytes / maxRequestBytes)
  expect(sizes.length).toBeGreaterThan(8)
})

test('numbers undelivered requests in sending order', () => {
  const output = new Output()
  output.append('node', 'stdout', Buffer.from('first'))
  expect(output.next()?.seq).toBe(0)
  output.acknowledge()
  output.append('node', 'stdout', Buffer.from('second'))
  const sending = output.next()
  output.append('node', 'stdout', Buffer.from([0xff]))
  const lastChunk = { nodeId: 'node', stream: 'stdout', data: '/w==', encoding: 'base64' }
  expect(output.freeze()).toEqual([sending, { seq: 2, chunks: [lastChunk] }])
  expect(output.next()).toBe(sending)
})

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const keys = new Map([['key-1', publicKey]])
const header = { alg: 'EdDSA', typ: 'test+jws', kid: 'key-1' }

function encode(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
}

function token(header: unknown, claims: unknown = {}, key = privateKey): string {
  const signingInput = `${encode(header)}.${encode(claims)}`
  return `${signingInput}.${sign(null, Buffer.from(signingInput), key).toString('base64url')}`
}

test('verifies a signed token', () => {
  const jws = signJws({ typ: 'test+jws', kid: 'key-1' }, { text: 'ä', number: 1.5 }, privateKey)
  expect(verifyJws(jws, 'test+jws', keys)).toEqual({ text: 'ä', number: 1.5 })
})

describe('rejects a token', () => {
  const validToken = token(header)
  const [head, claims, signature] = validToken.split('.') as [string, string, string]

  const forgeries: Record<string, string> = {
    'whose algorithm is none': token({ ...header, alg: 'none' }),
    'with an algorithm in another case': token({ ...header, alg: 'eddsa' }),
    'whose algorithm is symmetric': token({ ...header, alg: 'HS256' }),
    'of another type': token({ ...header, typ: 'relay+jwt' }),
    'without a type': token({ alg: 'EdDSA', kid: 'key-1' }),
    'of an unknown key': token({ ...header, kid: 'key-2' }),
    'whose kid is the name of an object member': token({ ...header, kid: '__proto__' }),
    'without a kid': token({ alg: 'EdDSA', typ: 'test+jws' }),
    'with an embedded key': token({ ...header, jwk: publicKey.export({ format: 'jwk' }) }),
    'with a critical extension': token({ ...header, crit: ['b64'] }),
    'signed by another key': token(header, {}, generateKeyPairSync('ed25519').privateKey),
    'without a signature': `${head}.${claims}.`,
    'with two parts': `${head}.${claims}`,
    'with four parts': `${validToken}.${signature}`,
    'with padding': `${head}.${claims}.${signature}==`,
    'with blanks in the signature': `${head}.${claims}.${signature} `,
    'with changed claims': `${head}.${encode({ admin: true })}.${signature}`,
    'with an invalid header': token('nonsense'),
    'whose claims are not an object': token(header, [1]),
    'that is empty': '',
  }

  test.for(Object.keys(forgeries))('%s', (name) => {
    expect(() => verifyJws(forgeries[name]!, 'test+jws', keys)).toThrow()
  })
})

test.for([0, 5, 20])('waits at most 15 s after %i failures, whatever the server asks for', (failures) => {
  const causes = [new RetryableError('unavailable'), new RetryableError('busy', { 'retry-after': '3600' })]
  for (const cause of causes) expect(retryDelayMs(failures, cause)).toBeLessThanOrEqual(15_000)
})

test('reports scripts as isolated from the key with --run-as, or if no node is this machine', () => {
  const localNode = { id: 'node_1', config: { name: 'a', executor: 'local' as const } }
  const ssh = { id: 'node_2', config: { name: 'b', executor: 'ssh' as const, host: 'b' } }
  const isIsolated = (nodes: EnrolledNode[], runAs?: ScriptUser) => isolatesScripts({ nodes } as Identity, runAs)
  const otherUser = { ...relayUser(), isOther: true }
  expect([isIsolated([localNode]), isIsolated([ssh, localNode]), isIsolated([ssh])]).toEqual([false, false, true])
  expect([isIsolated([localNode], otherUser), isIsolated([ssh, localNode], otherUser)]).toEqual([true, true])
})
