import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gunzipSync, gzipSync } from 'node:zlib'
import { claimDataFolder } from '@platform/local/data-folder'
import { restoreBackup } from '@platform/local/backup/read-backup'
import { writeBackup } from '@platform/local/backup/write-backup'
import { extract, type Header, pack } from 'tar-stream'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'

/** A data folder as a platform leaves it, as far as a backup cares. */
async function dataIn(folder: string): Promise<string> {
  const dataDir = join(folder, 'data')
  await mkdir(join(dataDir, 'dynamodb'), { recursive: true })
  await mkdir(join(dataDir, 'registry', 'content', 'ab'), { recursive: true })
  await writeFile(join(dataDir, 'dynamodb', 'CURRENT'), 'MANIFEST-1\n')
  await writeFile(join(dataDir, 'dynamodb', 'LOCK'), '')
  await writeFile(join(dataDir, 'registry', 'content', 'ab', 'abcd'), Buffer.alloc(3 * 2 ** 20, 7))
  await writeFile(join(dataDir, 'module-signing-key.pem'), 'a key', { mode: 0o600 })
  return dataDir
}

interface Part {
  header: Header
  content: Buffer
}

async function partsOf(file: string): Promise<Part[]> {
  const entries = extract()
  entries.end(gunzipSync(await readFile(file)))
  const parts: Part[] = []
  for await (const entry of entries) parts.push({ header: entry.header, content: await buffer(entry) })
  return parts
}

async function write(file: string, parts: readonly Part[]): Promise<void> {
  const archive = pack()
  for (const { header, content } of parts) archive.entry({ ...header, size: content.length }, content)
  archive.finalize()
  await writeFile(file, gzipSync(await buffer(archive)))
}

/** What is left beside the backup and the data that it was made of. */
const others = async (folder: string) =>
  (await readdir(folder)).filter((name) => name !== 'data' && name !== 'platform.backup')

async function backedUp(folder: string) {
  const dataDir = await dataIn(folder)
  const file = join(folder, 'platform.backup')
  await writeBackup(dataDir, file)
  return { dataDir, file, target: join(folder, 'restored') }
}

test('what is restored is what was there, but for what belongs to one run, and only its owner may read it', async () => {
  await using folder = await temporaryFolder()
  const { dataDir, file, target } = await backedUp(folder.path)
  await writeFile(join(dataDir, 'runtime.json'), '{}')
  const manifest = await restoreBackup(file, target)
  expect(manifest.files.map(({ path }) => path)).toEqual([
    'dynamodb/CURRENT',
    'dynamodb/LOCK',
    'module-signing-key.pem',
    'registry/content/ab/abcd',
  ])
  for (const { path } of manifest.files) {
    expect(await readFile(join(target, path))).toEqual(await readFile(join(dataDir, path)))
    expect((await stat(join(target, path))).mode & 0o777).toBe(0o600)
  }
  expect((await stat(target)).mode & 0o777).toBe(0o700)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await others(folder.path)).toEqual(['restored'])
})

test('no backup is made while somebody has the data, nor over a file that is there, nor into the data, nor of nothing', async () => {
  await using folder = await temporaryFolder()
  const dataDir = await dataIn(folder.path)
  const file = join(folder.path, 'platform.backup')
  using held = new DisposableStack()
  held.use(await claimDataFolder(dataDir))
  await expect(writeBackup(dataDir, file)).rejects.toThrow(/uses the data in .* Stop it/)
  held.dispose()
  await writeFile(file, 'yesterday’s')
  await expect(writeBackup(dataDir, file)).rejects.toThrow('is there already')
  expect(await readFile(file, 'utf8')).toBe('yesterday’s')
  await expect(writeBackup(dataDir, join(dataDir, 'backup'))).rejects.toThrow('in the folder that it is made of')
  await expect(writeBackup(join(folder.path, 'none'), `${file}-2`)).rejects.toThrow('There are no data of a platform')
  await expect(writeBackup(dataDir, join(folder.path, 'none', 'backup'))).rejects.toThrow(
    /^There is no folder .*none\.$/,
  )
  expect(await others(folder.path)).toEqual([])
})

test('what a backup that was killed has left is in nobody’s way, and stays', async () => {
  await using folder = await temporaryFolder()
  const dataDir = await dataIn(folder.path)
  const file = join(folder.path, 'platform.backup')
  await writeFile(`${file}.draft`, 'half', { mode: 0o644 })
  await writeBackup(dataDir, file)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await others(folder.path)).toEqual(['platform.backup.draft'])
  await restoreBackup(file, join(folder.path, 'restored'))
})

test('a link among the data is said, and nothing is left of the backup', async () => {
  await using folder = await temporaryFolder()
  const dataDir = await dataIn(folder.path)
  await symlink('/etc/hostname', join(dataDir, 'registry', 'link'))
  await expect(writeBackup(dataDir, join(folder.path, 'platform.backup'))).rejects.toThrow('is no plain file')
  expect(await others(folder.path)).toEqual([])
  expect(await readdir(folder.path)).toEqual(['data'])
})

test('nothing is restored over data that are there; an empty folder is none', async () => {
  await using folder = await temporaryFolder()
  const { file, target } = await backedUp(folder.path)
  await mkdir(target)
  await writeFile(join(target, 'mine'), 'mine')
  await expect(restoreBackup(file, target)).rejects.toThrow('There are data in')
  expect(await readdir(target)).toEqual(['mine'])
  const empty = join(folder.path, 'empty')
  await mkdir(empty)
  await restoreBackup(file, empty)
  expect(await readdir(empty)).toContain('dynamodb')
})

type Change = (parts: Part[]) => Part[]
const renamed =
  (name: string): Change =>
  (parts) =>
    parts.map((part, index) => (index === 0 ? { ...part, header: { ...part.header, name } } : part))
const manifestWith =
  (change: (manifest: any) => void): Change =>
  (parts) =>
    parts.map((part) => {
      if (part.header.name !== 'manifest.json') return part
      const manifest = JSON.parse(part.content.toString())
      change(manifest)
      return { ...part, content: Buffer.from(JSON.stringify(manifest)) }
    })
const typed =
  (type: 'symlink' | 'link' | 'directory' | 'fifo', linkname?: string): Change =>
  ([first, ...rest]) =>
    first === undefined
      ? []
      : [
          { header: { name: 'data/x', type, ...(linkname && { linkname }) } as Header, content: Buffer.alloc(0) },
          first,
          ...rest,
        ]

const damages: Record<string, Change> = {
  'a byte of a file is another': (parts) =>
    parts.map((part, index) => (index === 0 ? { ...part, content: Buffer.from('MANIFEST-2\n') } : part)),
  'a file is longer': (parts) =>
    parts.map((part, index) => (index === 0 ? { ...part, content: Buffer.alloc(100) } : part)),
  'a file is missing': (parts) => parts.slice(1),
  'a file is there twice': ([first, ...rest]) => (first === undefined ? [] : [first, first, ...rest]),
  'a file is there that is not listed': ([first, ...rest]) =>
    first === undefined ? [] : [first, { ...first, header: { ...first.header, name: 'data/more' } }, ...rest],
  'the manifest is missing': (parts) => parts.slice(0, -1),
  'something follows the manifest': (parts) => [...parts, ...parts.slice(0, 1)],
  'a path climbs up': renamed('data/../../outside'),
  'a path climbs up on its way': renamed('data/dynamodb/../../../outside'),
  'a path is absolute': renamed('/outside'),
  'a path has an empty part': renamed('data//outside'),
  'a path has a backslash': renamed(String.raw`data/..\outside`),
  'a path lies beside the data': renamed('outside'),
  'a symbolic link is in it': typed('symlink', '/etc'),
  'a hard link is in it': typed('link', '/etc/hostname'),
  'a pipe is in it': typed('fifo'),
  'a listed path climbs up': manifestWith((manifest) => {
    manifest.files[0].path = '../outside'
  }),
  'the manifest is of a format to come': manifestWith((manifest) => {
    manifest.format = 2
  }),
}

test.for(Object.entries(damages))('a backup is refused as a whole where %s', async ([, damage]) => {
  await using folder = await temporaryFolder()
  const { file, target } = await backedUp(folder.path)
  await write(file, damage(await partsOf(file)))
  await expect(restoreBackup(file, target)).rejects.toThrow(/^This is no whole backup: .* Nothing was restored\.$/)
  expect(await others(folder.path)).toEqual([])
})

test.for([0.1, 0.5, 0.9, 0.999])('a backup of which a part is missing is refused: %s of it', async (share) => {
  await using folder = await temporaryFolder()
  const { file, target } = await backedUp(folder.path)
  const whole = await readFile(file)
  await writeFile(file, whole.subarray(0, Math.floor(whole.length * share)))
  await expect(restoreBackup(file, target)).rejects.toThrow('This is no whole backup')
  expect(await others(folder.path)).toEqual([])
})

test('a backup of a newer version, and a file that is none or is not there, are told apart', async () => {
  await using folder = await temporaryFolder()
  const { file, target } = await backedUp(folder.path)
  const parts = await partsOf(file)
  await write(
    file,
    manifestWith((manifest) => {
      manifest.platformVersion = '99.0.0'
    })(parts),
  )
  await expect(restoreBackup(file, target)).rejects.toThrow('It was made by version 99.0.0, which is newer.')
  await expect(restoreBackup(join(folder.path, 'none'), target)).rejects.toThrow(/^There is no file .*none\.$/)
  await writeFile(file, 'some text')
  await expect(restoreBackup(file, target)).rejects.toThrow('it cannot be read')
  expect(await others(folder.path)).toEqual([])
})
