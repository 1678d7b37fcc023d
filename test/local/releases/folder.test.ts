import { appendFile, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FetchedRelease } from '@platform/core/updates/record'
import {
  DamagedRelease,
  draftedFunctions,
  draftFunction,
  folderName,
  readRelease,
  removeAllBut,
  removeDrafts,
  sealDraft,
} from '@platform/local/releases/folder'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const release = {
  version: '1.2.3',
  digest: `sha256:${'ab'.repeat(32)}`,
  repository: 'r.example.com/a',
} satisfies FetchedRelease
const program = new TextEncoder().encode('export const handler = () => 1')
const files = new Map([
  ['index.mjs', program],
  ['dist/pages/page.html', new TextEncoder().encode('<p>')],
])

async function sealed(folder: string): Promise<string> {
  for (const name of ['health', 'queue/jobs']) await draftFunction(folder, { release, name, files })
  await sealDraft(folder, { ...release, infrastructure: 'i', functionNames: ['health', 'queue/jobs'] })
  return join(folder, folderName(release))
}

test('a release is read as it was written', async () => {
  await using folder = await temporaryFolder()
  expect(await readRelease(folder.path, release)).toBeUndefined()
  const its = await sealed(folder.path)
  expect(await readRelease(folder.path, release)).toEqual({
    ...release,
    infrastructure: 'i',
    functionNames: ['health', 'queue/jobs'],
    folder: its,
  })
  expect(await readdir(folder.path)).toEqual([`1.2.3-${'ab'.repeat(6)}`])
})

test.for([
  ['a changed file', (its: string) => appendFile(join(its, 'functions/health/index.mjs'), ' ')],
  ['a missing file', (its: string) => rm(join(its, 'functions/health/dist/pages/page.html'))],
  ['a file too many', (its: string) => writeFile(join(its, 'functions/health/extra.mjs'), '')],
  [
    'a link in the place of a file',
    async (its: string) => {
      await rm(join(its, 'functions/health/index.mjs'))
      await symlink('nowhere', join(its, 'functions/health/index.mjs'))
    },
  ],
  ['a missing note', (its: string) => rm(join(its, 'release.json'))],
  ['half a note', (its: string) => writeFile(join(its, 'release.json'), '{"version":')],
] as const)('%s is damage', async ([, damage]) => {
  await using folder = await temporaryFolder()
  await damage(await sealed(folder.path))
  await expect(readRelease(folder.path, release)).rejects.toBeInstanceOf(DamagedRelease)
})

test('a folder of a release with the same name and another digest is damage', async () => {
  await using folder = await temporaryFolder()
  await sealed(folder.path)
  const other = { ...release, digest: `${release.digest.slice(0, -1)}0` }
  await expect(readRelease(folder.path, other)).rejects.toBeInstanceOf(DamagedRelease)
})

test('a damaged release is written anew in its place', async () => {
  await using folder = await temporaryFolder()
  const its = await sealed(folder.path)
  await appendFile(join(its, 'functions/health/index.mjs'), ' ')
  await sealed(folder.path)
  expect(await readRelease(folder.path, release)).toMatchObject({ version: '1.2.3' })
})

test('a draft knows its functions, and is gone after a start', async () => {
  await using folder = await temporaryFolder()
  expect(await draftedFunctions(folder.path, release)).toEqual(new Set())
  await draftFunction(folder.path, { release, name: 'queue/jobs', files })
  expect(await draftedFunctions(folder.path, release)).toEqual(new Set(['queue/jobs']))
  await removeDrafts(folder.path)
  expect(await draftedFunctions(folder.path, release)).toEqual(new Set())
})

test('a function that cannot be written as a whole is not in the draft', async () => {
  await using folder = await temporaryFolder()
  const broken = new Map([...files, ['index.mjs/below-a-file', program]])
  await expect(draftFunction(folder.path, { release, name: 'health', files: broken })).rejects.toThrow()
  expect(await draftedFunctions(folder.path, release)).toEqual(new Set())
})

test('what is not needed goes; files beside the releases stay', async () => {
  await using folder = await temporaryFolder()
  await sealed(folder.path)
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
