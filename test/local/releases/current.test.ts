import { appendFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FetchedRelease } from '@platform/core/updates/record'
import { writeCurrentRelease, releaseAtStart } from '@platform/local/releases/current'
import { draftFunction, folderName, sealDraft } from '@platform/local/releases/folder'
import { StartError } from '@platform/local/start-error'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const release = {
  version: '1.2.3',
  digest: `sha256:${'ab'.repeat(32)}`,
  repository: 'r.example.com/a',
} satisfies FetchedRelease
const checkout = { version: '1.0.0', infrastructure: 'i' }

/** A folder in which the release was applied over the checkout. */
async function applied() {
  const folder = await temporaryFolder()
  const files = new Map([['index.mjs', new TextEncoder().encode('export const handler = () => 1')]])
  await draftFunction(folder.path, { release, name: 'health', files })
  await sealDraft(folder.path, { ...release, infrastructure: 'i', functionNames: ['health'] })
  await writeCurrentRelease(folder.path, release, checkout)
  const lines: string[] = []
  const start = (now = checkout) => releaseAtStart(folder.path, now, (line) => lines.push(line))
  return { path: folder.path, lines, start, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

test('without a note the checkout serves', async () => {
  await using folder = await temporaryFolder()
  expect(await releaseAtStart(folder.path, checkout, () => undefined)).toBeUndefined()
})

test('the release that was noted serves, at every start', async () => {
  await using folder = await applied()
  expect(await folder.start()).toMatchObject({ version: '1.2.3', repository: 'r.example.com/a' })
  expect(await folder.start()).toMatchObject({ version: '1.2.3' })
  expect(folder.lines).toEqual([])
})

test('a release stays when the checkout moves to a version below it', async () => {
  await using folder = await applied()
  expect(await folder.start({ ...checkout, version: '1.2.2' })).toMatchObject({ version: '1.2.3' })
})

test.for([
  ['newer', { version: '1.3.0', infrastructure: 'i' }],
  ['the same version', { version: '1.2.3', infrastructure: 'i' }],
  ['of another infrastructure', { version: '1.0.0', infrastructure: 'j' }],
] as const)('a checkout that is %s by now serves, and one line says so', async ([, now]) => {
  await using folder = await applied()
  expect(await folder.start(now)).toBeUndefined()
  expect(folder.lines).toEqual([expect.stringContaining('release 1.2.3 is set aside')])
  expect((await readdir(folder.path)).toSorted()).toEqual([folderName(release), 'current-set-aside.json'])
  // Going back to the checkout of before does not bring it back by surprise.
  expect(await folder.start()).toBeUndefined()
})

test('an older release that was gone back to on purpose stays', async () => {
  await using folder = await applied()
  const newer = { ...checkout, version: '2.0.0' }
  await writeCurrentRelease(folder.path, release, newer)
  expect(await folder.start(newer)).toMatchObject({ version: '1.2.3' })
})

test('noting the checkout takes the note away', async () => {
  await using folder = await applied()
  await writeCurrentRelease(folder.path, undefined, checkout)
  expect(await folder.start()).toBeUndefined()
  await writeCurrentRelease(folder.path, undefined, checkout)
})

test.for([
  ['is damaged', (path: string) => appendFile(join(path, folderName(release), 'functions/health/index.mjs'), ' ')],
  ['is missing', (path: string) => rm(join(path, folderName(release)), { recursive: true })],
  ['has no note', (path: string) => rm(join(path, folderName(release), 'release.json'))],
  ['is named by a broken note', (path: string) => writeFile(join(path, 'current.json'), '{')],
  ['is named by another kind of note', (path: string) => writeFile(join(path, 'current.json'), '{"version":1}')],
] as const)('a release that %s ends the start with what to do', async ([, damage]) => {
  await using folder = await applied()
  await damage(folder.path)
  const failed = folder.start()
  await expect(failed).rejects.toBeInstanceOf(StartError)
  await expect(failed).rejects.toThrow(
    `Remove ${join(folder.path, 'current.json')} to start with version 1.0.0 of this folder; then apply the update again.`,
  )
})
