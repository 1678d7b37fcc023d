import { appendFile, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FetchedRelease } from '@platform/core/updates/record'
import { releaseAtStart, writeCurrentRelease } from '@platform/local/releases/current'
import {
  DamagedRelease,
  listDraftedFunctions,
  draftFunction,
  folderName,
  readRelease,
  removeAllBut,
  removeDrafts,
  sealDraft,
} from '@platform/local/releases/folder'
import { unpack } from '@platform/local/releases/zip'
import { StartError } from '@platform/local/start-error'
import { TargetError } from '@platform/worker/updates/target/port'
import { zipSync } from 'fflate'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { zipOf } from './support.ts'

const release = {
  version: '1.2.3',
  digest: `sha256:${'ab'.repeat(32)}`,
  repository: 'r.example.com/a',
} satisfies FetchedRelease

const checkout = { version: '1.0.0', infrastructure: 'i' }
const program = new TextEncoder().encode('export const handler = () => 1')

const files = new Map([
  ['index.mjs', program],
  ['dist/pages/page.html', new TextEncoder().encode('<p>')],
])

async function seal(releasesDir: string): Promise<string> {
  for (const name of ['health', 'queue/batches']) await draftFunction(releasesDir, { release, name, files })
  await sealDraft(releasesDir, { ...release, infrastructure: 'i', functionNames: ['health', 'queue/batches'] })
  return join(releasesDir, folderName(release))
}

test('reads a release as it was written, and rejects another digest', async () => {
  await using folder = await temporaryFolder()
  expect(await readRelease(folder.path, release)).toBeUndefined()
  const sealedRelease = await seal(folder.path)
  expect(await readRelease(folder.path, release)).toEqual({
    ...release,
    infrastructure: 'i',
    functionNames: ['health', 'queue/batches'],
    folder: sealedRelease,
  })
  expect(await readdir(folder.path)).toEqual([`1.2.3-${'ab'.repeat(6)}`])
  const otherRelease = { ...release, digest: `${release.digest.slice(0, -1)}0` }
  await expect(readRelease(folder.path, otherRelease)).rejects.toBeInstanceOf(DamagedRelease)
})

test.for([
  ['a changed file', (releaseFolder: string) => appendFile(join(releaseFolder, 'functions/health/index.mjs'), ' ')],
  ['a missing file', (releaseFolder: string) => rm(join(releaseFolder, 'functions/health/dist/pages/page.html'))],
  ['an additional file', (releaseFolder: string) => writeFile(join(releaseFolder, 'functions/health/extra.mjs'), '')],
  ['a symbolic link', (releaseFolder: string) => symlink('nowhere', join(releaseFolder, 'functions/health/link.mjs'))],
  ['a missing release.json', (releaseFolder: string) => rm(join(releaseFolder, 'release.json'))],
  ['a partial release.json', (releaseFolder: string) => writeFile(join(releaseFolder, 'release.json'), '{"version":')],
] as const)('detects %s, and replaces the release', async ([, damage]) => {
  await using folder = await temporaryFolder()
  await damage(await seal(folder.path))
  await expect(readRelease(folder.path, release)).rejects.toBeInstanceOf(DamagedRelease)
  await seal(folder.path)
  expect(await readRelease(folder.path, release)).toMatchObject({ version: '1.2.3' })
})

test('lists the complete functions of a draft, and removes drafts at the start', async () => {
  await using folder = await temporaryFolder()
  const drafted = () => listDraftedFunctions(folder.path, release)
  const brokenFiles = new Map([...files, ['index.mjs/below-a-file', program]])
  await expect(draftFunction(folder.path, { release, name: 'health', files: brokenFiles })).rejects.toThrow()
  expect(await drafted()).toEqual(new Set())
  await draftFunction(folder.path, { release, name: 'queue/batches', files })
  expect(await drafted()).toEqual(new Set(['queue/batches']))
  await removeDrafts(folder.path)
  expect(await drafted()).toEqual(new Set())
})

test('removes other releases and drafts, not files', async () => {
  await using folder = await temporaryFolder()
  await seal(folder.path)
  for (const name of ['1.0.0-aaaaaaaaaaaa', '1.1.0-bbbbbbbbbbbb.draft', '1.3.0-cccccccccccc.draft']) {
    await mkdir(join(folder.path, name))
  }
  await writeFile(join(folder.path, 'current.json'), '')
  await removeAllBut(folder.path, new Set([folderName(release), '1.3.0-cccccccccccc']))
  expect((await readdir(folder.path)).toSorted()).toEqual([
    folderName(release),
    '1.3.0-cccccccccccc.draft',
    'current.json',
  ])
})

async function applyRelease() {
  const folder = await temporaryFolder()
  await seal(folder.path)
  await writeCurrentRelease(folder.path, release, checkout)
  const lines: string[] = []
  const start = (now = checkout) => releaseAtStart(folder.path, now, (line) => lines.push(line))
  return { path: folder.path, lines, start, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

test('starts with the current release, or with the checkout if there is none', async () => {
  await using folder = await applyRelease()
  expect(await folder.start()).toMatchObject({ version: '1.2.3', repository: 'r.example.com/a' })
  expect(await folder.start({ ...checkout, version: '1.2.2' })).toMatchObject({ version: '1.2.3' })
  expect(folder.lines).toEqual([])
  await writeCurrentRelease(folder.path, undefined, checkout)
  expect(await folder.start()).toBeUndefined()
})

test.for([
  ['newer', { version: '1.3.0', infrastructure: 'i' }],
  ['the same version', { version: '1.2.3', infrastructure: 'i' }],
  ['of another infrastructure', { version: '1.0.0', infrastructure: 'j' }],
] as const)('a checkout that is %s replaces the release, and logs it', async ([, now]) => {
  await using folder = await applyRelease()
  expect(await folder.start(now)).toBeUndefined()
  expect(folder.lines).toEqual([expect.stringContaining('release 1.2.3 is set aside')])
  expect((await readdir(folder.path)).toSorted()).toEqual([folderName(release), 'current-set-aside.json'])
  // A start with the earlier checkout does not restore the release.
  expect(await folder.start()).toBeUndefined()
})

test('an older release stays after a deliberate rollback', async () => {
  await using folder = await applyRelease()
  const newerCheckout = { ...checkout, version: '2.0.0' }
  await writeCurrentRelease(folder.path, release, newerCheckout)
  expect(await folder.start(newerCheckout)).toMatchObject({ version: '1.2.3' })
})

test.for([
  ['is damaged', (path: string) => appendFile(join(path, folderName(release), 'functions/health/index.mjs'), ' ')],
  ['is missing', (path: string) => rm(join(path, folderName(release)), { recursive: true })],
  ['has no release.json', (path: string) => rm(join(path, folderName(release), 'release.json'))],
  ['is in an invalid current.json', (path: string) => writeFile(join(path, 'current.json'), '{')],
  ['is in a current.json of another format', (path: string) => writeFile(join(path, 'current.json'), '{"version":1}')],
] as const)('a release that %s ends the start with advice', async ([, damage]) => {
  await using folder = await applyRelease()
  await damage(folder.path)
  const failedStart = folder.start()
  await expect(failedStart).rejects.toBeInstanceOf(StartError)
  await expect(failedStart).rejects.toThrow(
    `Remove ${join(folder.path, 'current.json')} to start with version 1.0.0 of this folder; then apply the update again.`,
  )
})

const decode = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes)

test.for([
  ['begins with ..', '../index.mjs'],
  ['contains ..', 'dist/../../index.mjs'],
  ['is absolute', '/etc/cron.d/job'],
  ['is absolute on Windows', 'C:\\job.mjs'],
  ['contains .. on Windows', 'dist\\..\\..\\job.mjs'],
  ['has an empty segment', 'dist//x'],
  ['begins with .', './index.mjs'],
  ['has a zero byte', 'index.mjs\u0000.txt'],
] as const)('rejects a path that %s', ([, name]) => {
  const zip = zipOf({ 'index.mjs': '', [name]: 'x' })
  expect(() => unpack(zip)).toThrow(expect.objectContaining({ name: 'TargetError', isFinal: true }))
  expect(() => unpack(zip)).toThrow('outside its folder')
})

const manyFiles = Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`f${index}`, '']))

test.for([
  ['that is not a zip', new TextEncoder().encode('no zip at all'), 'broken'],
  ['that is empty', new Uint8Array(), 'broken'],
  ['that is truncated', zipOf({ 'index.mjs': 'a'.repeat(1000) }).slice(0, 60), 'broken'],
  ['without a program', zipOf({ 'other.mjs': '' }), 'no index.mjs'],
  ['that grows too large', zipSync({ 'index.mjs': new Uint8Array(51 * 1024 * 1024) }, { level: 1 }), 'bytes'],
  ['with too many files', zipOf(manyFiles), 'files'],
] as const)('rejects a zip %s', ([, zip, reason]) => {
  expect(() => unpack(zip)).toThrow(TargetError)
  expect(() => unpack(zip)).toThrow(reason)
})

test('unpacks a link as a plain file', () => {
  const link = [new TextEncoder().encode('/etc/passwd'), { os: 3, attrs: (0o120777 << 16) >>> 0 }] as const
  const entries = unpack(zipSync({ 'index.mjs': new Uint8Array(), 'dist/page': [...link] }))
  expect(decode(entries.get('dist/page'))).toBe('/etc/passwd')
})
