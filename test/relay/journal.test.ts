import { Journal } from '@platform/relay/journal'
import type { CompletionRecord, Entry } from '@platform/relay/journal-entry'
import type { Leader } from '@platform/relay/process-group'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'relay-journal-'))
  path = join(folder, 'journal.jsonl')
})

afterEach(() => rmSync(folder, { recursive: true }))

const ending: CompletionRecord = { outcome: 'exited', exitCode: 0, nodes: [] }
const claiming: Entry = { state: 'claiming', jobId: 'job_1', claimKey: 'key' }
const started = (leaders: Leader[]): Entry => ({ state: 'started', jobId: 'job_1', leaseId: 'lease_1', leaders })
const finished: Entry = { state: 'finished', jobId: 'job_1', leaseId: 'lease_1', ending }
const daysAgo = (days: number) => Date.now() - days * 24 * 3_600_000

test('a journal that is opened again knows what the earlier one promised', () => {
  const journal = new Journal(path)
  journal.append(claiming)
  journal.append(started([]))
  journal.append({ state: 'spawned', jobId: 'job_1', leader: { pid: 7, stamp: 'now' } })
  journal.close()
  const reopened = new Journal(path)
  expect(reopened.has('job_1')).toBe(true)
  expect(reopened.unfinished()).toEqual([started([{ pid: 7, stamp: 'now' }])])
})

test('a job that is done is remembered, though nothing is left to do for it', () => {
  const journal = new Journal(path)
  for (const record of [claiming, started([]), finished]) journal.append(record)
  expect(journal.unfinished()).toEqual([finished])
  journal.append({ state: 'done', jobId: 'job_1', atMs: Date.now() })
  journal.close()
  const reopened = new Journal(path)
  expect(reopened.unfinished()).toEqual([])
  expect(reopened.has('job_1')).toBe(true)
})

test('a claim that the server refused is forgotten', () => {
  const journal = new Journal(path)
  journal.append(claiming)
  journal.append({ state: 'dropped', jobId: 'job_1' })
  expect(journal.has('job_1')).toBe(false)
})

test('a record that a power cut tore is dropped, and later ones are whole', () => {
  const journal = new Journal(path)
  journal.append(claiming)
  journal.close()
  appendFileSync(path, '{"state":"done","jobId":"jo')
  const mended = new Journal(path)
  expect(mended.unfinished()).toEqual([claiming])
  mended.append({ state: 'done', jobId: 'job_1', atMs: Date.now() })
  mended.close()
  expect(new Journal(path).unfinished()).toEqual([])
})

test('a journal that is damaged before its end is refused, not trusted', () => {
  writeFileSync(path, `${JSON.stringify(claiming)}\ngarbage\n${JSON.stringify(finished)}\n`)
  expect(() => new Journal(path)).toThrow(/damaged in line 2/)
})

test('a job is remembered for 30 days, and forgotten some days later', () => {
  const lines = [
    { state: 'done', jobId: 'job_30', atMs: daysAgo(30) },
    { state: 'done', jobId: 'job_40', atMs: daysAgo(40) },
    { ...finished, jobId: 'job_unreported' },
  ]
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const journal = new Journal(path)
  expect(journal.has('job_30')).toBe(true)
  expect(journal.has('job_40')).toBe(false)
  expect(journal.unfinished()).toHaveLength(1)
})

test('the journal stays small, however many jobs pass', () => {
  const journal = new Journal(path)
  for (let count = 0; count < 800; count++) {
    journal.append({ ...claiming, jobId: 'job_again' })
    journal.append({ state: 'dropped', jobId: 'job_again' })
  }
  expect(statSync(path).size).toBeLessThan(100_000)
  expect(readFileSync(path, 'utf8').split('\n').length).toBeLessThan(1002)
})
