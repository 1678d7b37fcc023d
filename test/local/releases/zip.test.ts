import { unpack } from '@platform/local/releases/zip'
import { TargetError } from '@platform/worker/updates/target/port'
import { zipSync } from 'fflate'
import { expect, test } from 'vitest'
import { zipOf } from './support.ts'

const text = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes)

test('a zip is unpacked with its folders', () => {
  const found = unpack(zipOf({ 'index.mjs': 'a', 'dist/docs.html': 'b' }))
  expect([...found].map(([path, content]) => [path, text(content)])).toEqual([
    ['index.mjs', 'a'],
    ['dist/docs.html', 'b'],
  ])
})

test.for([
  ['climbs', '../index.mjs'],
  ['climbs in the middle', 'dist/../../index.mjs'],
  ['is absolute', '/etc/cron.d/job'],
  ['is absolute on Windows', 'C:\\job.mjs'],
  ['climbs on Windows', 'dist\\..\\..\\job.mjs'],
  ['has an empty part', 'dist//x'],
  ['is the folder itself', './index.mjs'],
  ['has a zero byte', 'index.mjs\u0000.txt'],
] as const)('a name that %s is refused for good', ([, name]) => {
  const zip = zipOf({ 'index.mjs': '', [name]: 'x' })
  expect(() => unpack(zip)).toThrow(expect.objectContaining({ name: 'TargetError', isFinal: true }))
  expect(() => unpack(zip)).toThrow('outside of its folder')
})

test.for([
  ['that is none', new TextEncoder().encode('no zip at all'), 'broken'],
  ['that is empty', new Uint8Array(), 'broken'],
  ['that is cut off', zipOf({ 'index.mjs': 'a'.repeat(1000) }).slice(0, 60), 'broken'],
  ['without a program', zipOf({ 'other.mjs': '' }), 'no index.mjs'],
  ['that grows too large', zipSync({ 'index.mjs': new Uint8Array(51 * 1024 * 1024) }), 'bytes'],
  [
    'with too many files',
    zipOf(Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`f${index}`, '']))),
    'files',
  ],
] as const)('a zip %s is refused for good', ([, zip, reason]) => {
  expect(() => unpack(zip)).toThrow(TargetError)
  expect(() => unpack(zip)).toThrow(reason)
})

test('a link is a file that holds the name of its target', () => {
  const link = [new TextEncoder().encode('/etc/passwd'), { os: 3, attrs: (0o120777 << 16) >>> 0 }] as const
  const found = unpack(zipSync({ 'index.mjs': new Uint8Array(), 'dist/page': [...link] }))
  expect(text(found.get('dist/page'))).toBe('/etc/passwd')
})
