import { lockState } from '@platform/relay/lock'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'relay-lock-'))
})

afterEach(() => rmSync(folder, { recursive: true }))

test('a folder is locked until the lock is given back', () => {
  const unlock = lockState(folder)
  expect(() => lockState(folder)).toThrow(/Another relay/)
  unlock()
  lockState(folder)()
  expect(readdirSync(folder)).toEqual([])
})

test('the lock of a dead process is taken over, though a living one has its number now', () => {
  writeFileSync(join(folder, 'lock'), JSON.stringify({ pid: process.pid, stamp: 'of an earlier process' }))
  lockState(folder)()
  expect(readdirSync(folder)).toEqual([])
})

test('a lock that cannot be read is taken over', () => {
  writeFileSync(join(folder, 'lock'), '')
  lockState(folder)()
  expect(readdirSync(folder)).toEqual([])
})
