import { randomBytes } from 'node:crypto'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gunzipSync, gzipSync } from 'node:zlib'
import { layoutVersion } from '@platform/core/db/schema'
import { readPassphrase } from '@platform/local/backup/encryption'
import { restoreBackup } from '@platform/local/backup/restore-folder'
import { writeBackup } from '@platform/local/backup/write-backup'
import { claimDataFolder } from '@platform/local/data-folder'
import { StartError } from '@platform/local/start-error'
import { extract, type Header, pack } from 'tar-stream'
import { expect, test } from 'vitest'
import { canMount, mountedFolder } from '../../support/mounted-folder.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

async function dataFolder({ layout = layoutVersion } = {}) {
  const folder = await temporaryFolder()
  const dataDir = join(folder.path, 'data')
  await mkdir(join(dataDir, 'dynamodb'), { recursive: true })
  await mkdir(join(dataDir, 'registry', 'content', 'ab'), { recursive: true })
  await writeFile(join(dataDir, 'dynamodb', 'CURRENT'), 'MANIFEST-1\n')
  await writeFile(join(dataDir, 'dynamodb', 'LOCK'), '')
  if (layout > 0) await writeFile(join(dataDir, 'layout-version'), `${layout}\n`)
  await writeFile(join(dataDir, 'registry', 'content', 'ab', 'abcd'), Buffer.alloc(2 ** 20, 7))
  await writeFile(join(dataDir, 'module-signing-key.pem'), 'a key', { mode: 0o600 })
  const others = async () => (await readdir(folder.path)).filter((name) => !['data', 'platform.backup'].includes(name))
  const file = join(folder.path, 'platform.backup')
  const dispose = () => folder[Symbol.asyncDispose]()
  return {
    path: folder.path,
    dataDir,
    file,
    others,
    target: join(folder.path, 'restored'),
    [Symbol.asyncDispose]: dispose,
  }
}

async function backedUpFolder() {
  const folder = await dataFolder()
  await writeBackup(folder.dataDir, folder.file)
  return folder
}

interface TarEntry {
  header: Header
  content: Buffer
}

async function rewrite(file: string, change: (entries: TarEntry[]) => TarEntry[]): Promise<void> {
  const reader = extract()
  reader.end(gunzipSync(await readFile(file)))
  const entries: TarEntry[] = []
  for await (const entry of reader) entries.push({ header: entry.header, content: await buffer(entry) })
  const archive = pack()
  for (const { header, content } of change(entries)) archive.entry({ ...header, size: content.length }, content)
  archive.finalize()
  await writeFile(file, gzipSync(await buffer(archive)))
}

test('a restored folder has all state with private permissions, without the state of one run', async () => {
  await using folder = await backedUpFolder()
  const { dataDir, file, target } = folder
  await writeFile(join(dataDir, 'runtime.json'), '{}')
  const manifest = await restoreBackup(file, target)
  expect(manifest.files.map(({ path }) => path)).toEqual([
    'dynamodb/CURRENT',
    'dynamodb/LOCK',
    'layout-version',
    'module-signing-key.pem',
    'registry/content/ab/abcd',
  ])
  for (const { path } of manifest.files) {
    expect(await readFile(join(target, path))).toEqual(await readFile(join(dataDir, path)))
    expect((await stat(join(target, path))).mode & 0o777).toBe(0o600)
  }
  expect((await stat(target)).mode & 0o777).toBe(0o700)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await folder.others()).toEqual(['restored'])
})

test('rejects a backup of a used or missing folder, over a file, into the data, or to a missing folder', async () => {
  await using folder = await dataFolder()
  const { dataDir, file } = folder
  using claim = new DisposableStack()
  claim.use(await claimDataFolder(dataDir))
  await expect(writeBackup(dataDir, file)).rejects.toThrow(/uses the data in .* Stop it/)
  claim.dispose()
  await writeFile(file, 'an earlier backup')
  await expect(writeBackup(dataDir, file)).rejects.toThrow('already exists')
  expect(await readFile(file, 'utf8')).toBe('an earlier backup')
  await symlink(dataDir, join(folder.path, 'link'))
  for (const path of [dataDir, join(folder.path, 'link'), join(folder.path, 'link', 'registry')])
    await expect(writeBackup(dataDir, join(path, 'backup'))).rejects.toThrow('outside the data folder')
  await expect(writeBackup(join(folder.path, 'none'), `${file}-2`)).rejects.toThrow('contains no data of a platform')
  const failedBackup = writeBackup(dataDir, join(folder.path, 'none', 'backup'))
  await expect(failedBackup).rejects.toThrow(/^The folder .*none does not exist\.$/)
  expect(await folder.others()).toEqual(['link'])
})

test('ignores and keeps the draft of a killed backup', async () => {
  await using folder = await dataFolder()
  await writeFile(`${folder.file}.draft`, 'half', { mode: 0o644 })
  await writeBackup(folder.dataDir, folder.file)
  expect((await stat(folder.file)).mode & 0o777).toBe(0o600)
  expect(await folder.others()).toEqual(['platform.backup.draft'])
  await restoreBackup(folder.file, folder.target)
})

test('rejects a symbolic link in the data, and leaves no draft', async () => {
  await using folder = await dataFolder()
  await symlink('/etc/hostname', join(folder.dataDir, 'registry', 'link'))
  await expect(writeBackup(folder.dataDir, folder.file)).rejects.toThrow('is not a regular file')
  expect(await readdir(folder.path)).toEqual(['data'])
})

test('restores into an empty folder, but not over data', async () => {
  await using folder = await backedUpFolder()
  const { file, target } = folder
  await mkdir(target)
  await writeFile(join(target, 'mine'), 'mine')
  await expect(restoreBackup(file, target)).rejects.toThrow('contains data')
  expect(await readdir(target)).toEqual(['mine'])
  const emptyFolder = join(folder.path, 'empty')
  await mkdir(emptyFolder)
  await restoreBackup(file, emptyFolder)
  expect(await readdir(emptyFolder)).toContain('dynamodb')
})

test.skipIf(!canMount)('restores into a mount point and keeps its mode', async () => {
  await using folder = await backedUpFolder()
  await using disk = await mountedFolder('16m')
  await mkdir(join(disk.path, 'lost+found'))
  await using registry = await mountedFolder('16m', join(disk.path, 'registry'))
  await restoreBackup(folder.file, disk.path)
  const names = ['dynamodb', 'layout-version', 'lock.sqlite', 'lost+found', 'module-signing-key.pem', 'registry']
  expect((await readdir(disk.path)).toSorted()).toEqual(names)
  expect(await readdir(join(registry.path, 'content', 'ab'))).toEqual(['abcd'])
  expect((await stat(disk.path)).mode & 0o777).toBe(0o750)
})

test('restores through a symbolic link', async () => {
  await using folder = await backedUpFolder()
  await mkdir(join(folder.path, 'real'))
  await symlink('real', folder.target)
  await restoreBackup(folder.file, folder.target)
  expect(await readdir(join(folder.path, 'real'))).toContain('dynamodb')
})

test('an interrupted restore is visible, and can be repeated in an empty folder', async () => {
  await using folder = await backedUpFolder()
  const { file, target } = folder
  await mkdir(join(target, 'restoring'), { recursive: true })
  await writeFile(join(target, 'restoring', 'half'), '')
  await expect(claimDataFolder(target)).rejects.toThrow('was interrupted. Empty the folder')
  await writeFile(join(target, 'layout-version'), '')
  await expect(restoreBackup(file, target)).rejects.toThrow(
    /was interrupted and left .*layout-version\. Empty the folder/,
  )
  await expect(claimDataFolder(target)).rejects.toThrow('was interrupted. Empty the folder')
  await rm(join(target, 'layout-version'))
  await restoreBackup(file, target)
  const claim = await claimDataFolder(target)
  claim[Symbol.dispose]()
})

test.each([
  [
    'a file as folder',
    'platform.backup',
    '',
    /platform\.backup cannot be used: a file or a broken link is where a folder must be\.$/,
  ],
  [
    'a folder below a file',
    'platform.backup/data',
    '',
    /cannot be used: a file or a broken link is where a folder must be\.$/,
  ],
  ['a loop of links', 'loop', '', /loop cannot be used: a file or a broken link is where a folder must be\.$/],
  ['a folder as backup', 'restored', 'data', /data cannot be used: a folder is where a file must be\.$/],
  ['a folder that the kernel owns', '/proc/restored', '', /^\/proc\/restored cannot be (?:used|created)/],
])('explains with the path why %s cannot be used', async (_, target, backup, message) => {
  await using folder = await backedUpFolder()
  await symlink('loop', join(folder.path, 'loop'))
  const file = backup === '' ? folder.file : join(folder.path, backup)
  await expect(restoreBackup(file, resolve(folder.path, target))).rejects.toThrow(message)
  if (backup === '') await expect(claimDataFolder(resolve(folder.path, target))).rejects.toThrow(StartError)
  expect(await folder.others()).toEqual(['loop'])
})

test.skipIf(!canMount)('restores into a folder whose parent cannot be written', async () => {
  await using folder = await backedUpFolder()
  await using parent = await mountedFolder('1m')
  await using target = await mountedFolder('8m', join(parent.path, 'data'))
  execFileSync('mount', ['-o', 'remount,ro', parent.path])
  await restoreBackup(folder.file, target.path)
  expect(await readdir(target.path)).toContain('dynamodb')
})

test.skipIf(!canMount)('explains a full disk with the path and leaves an empty folder', async () => {
  await using folder = await backedUpFolder()
  await using disk = await mountedFolder('100k')
  await expect(restoreBackup(folder.file, disk.path)).rejects.toThrow(/abcd cannot be used: the disk is full\.$/)
  expect(await readdir(disk.path)).toEqual(['lock.sqlite'])
})

type Change = (entries: TarEntry[]) => TarEntry[]
const changeFirst =
  (change: (entry: TarEntry) => TarEntry[]): Change =>
  ([first, ...rest]) => [...(first === undefined ? [] : change(first)), ...rest]
const renameEntry = (name: string) => changeFirst((entry) => [{ ...entry, header: { ...entry.header, name } }])
const withContent = (content: Buffer) => changeFirst((entry) => [{ ...entry, content }])
const withEntry = (type: 'symlink' | 'link' | 'fifo', linkname?: string) =>
  changeFirst((entry) => [
    { header: { name: 'data/x', type, ...(linkname && { linkname }) } as Header, content: Buffer.alloc(0) },
    entry,
  ])
const manifestOf = (entries: TarEntry[]) => JSON.parse(String(entries.at(-1)?.content))
const withManifest =
  (change: object): Change =>
  (entries) => {
    const content = Buffer.from(JSON.stringify({ ...manifestOf(entries), ...change }))
    return entries.map((entry) => (entry.header.name === 'manifest.json' ? { ...entry, content } : entry))
  }

test.for(
  Object.entries<Change>({
    'a changed file': withContent(Buffer.from('MANIFEST-2\n')),
    'a longer file': withContent(Buffer.alloc(100)),
    'a missing file': (entries) => entries.slice(1),
    'a repeated file': changeFirst((entry) => [entry, entry]),
    'an unlisted file': changeFirst((entry) => [entry, { ...entry, header: { ...entry.header, name: 'data/more' } }]),
    'a missing manifest': (entries) => entries.slice(0, -1),
    'an entry after the manifest': (entries) => [...entries, ...entries.slice(0, 1)],
    'a path that begins with ..': renameEntry('data/../../outside'),
    'a path that contains ..': renameEntry('data/dynamodb/../../../outside'),
    'an absolute path': renameEntry('/outside'),
    'an empty path segment': renameEntry('data//outside'),
    'a backslash in a path': renameEntry(String.raw`data/..\outside`),
    'a path outside the data': renameEntry('outside'),
    'a symbolic link': withEntry('symlink', '/etc'),
    'a hard link': withEntry('link', '/etc/hostname'),
    'a pipe': withEntry('fifo'),
    'a listed path that contains ..': (entries) => {
      const [first, ...files] = manifestOf(entries).files
      return withManifest({ files: [{ ...first, path: '../outside' }, ...files] })(entries)
    },
    'an unknown format': withManifest({ format: 2 }),
  }),
)('rejects a backup with %s completely', async ([, change]) => {
  await using folder = await backedUpFolder()
  await rewrite(folder.file, change)
  const restoration = restoreBackup(folder.file, folder.target)
  await expect(restoration).rejects.toThrow(/^The backup is damaged: .* Nothing was restored\.$/)
  expect(await folder.others()).toEqual([])
})

test.for([0.1, 0.5, 0.9, 0.999])('rejects a backup truncated to %s', async (share) => {
  await using folder = await backedUpFolder()
  const bytes = await readFile(folder.file)
  await writeFile(folder.file, bytes.subarray(0, Math.floor(bytes.length * share)))
  await expect(restoreBackup(folder.file, folder.target)).rejects.toThrow('The backup is damaged')
  expect(await folder.others()).toEqual([])
})

test('rejects a backup of a newer version, a missing file, and a file that is not a backup', async () => {
  await using folder = await backedUpFolder()
  const { file, target } = folder
  await rewrite(file, withManifest({ platformVersion: '99.0.0' }))
  await expect(restoreBackup(file, target)).rejects.toThrow('The backup was made by the newer version 99.0.0.')
  await expect(restoreBackup(join(folder.path, 'none'), target)).rejects.toThrow(/none does not exist\.$/)
  await writeFile(file, 'some text')
  await expect(restoreBackup(file, target)).rejects.toThrow('it cannot be read')
  expect(await folder.others()).toEqual([])
})

test('rejects data and backups of another layout', async () => {
  for (const layout of [0, layoutVersion + 1]) {
    await using folder = await dataFolder({ layout })
    await expect(claimDataFolder(folder.dataDir)).rejects.toThrow(`It has layout ${layout}, and this version`)
  }
  await using folder = await backedUpFolder()
  await rewrite(folder.file, (entries) => {
    const files = manifestOf(entries).files.filter(({ path }: { path: string }) => path !== 'layout-version')
    return withManifest({ files })(entries.filter(({ header }) => header.name !== 'data/layout-version'))
  })
  const restoration = restoreBackup(folder.file, folder.target)
  await expect(restoration).rejects.toThrow(/cannot be restored\. It has layout 0, and this version .*PLAT_DATA_DIR/)
  expect(await folder.others()).toEqual([])
})

const passphrase = 'correct horse battery staple'

test('an encrypted backup contains no readable data, and its passphrase restores it', async () => {
  await using folder = await dataFolder()
  const { dataDir, file, target } = folder
  await writeFile(join(dataDir, 'random'), randomBytes(300_000))
  await writeBackup(dataDir, file, passphrase)
  expect((await readFile(file)).includes('manifest.json')).toBe(false)
  expect(() => gunzipSync(readFileSync(file))).toThrow()
  const { files } = await restoreBackup(file, target, passphrase)
  for (const { path } of files) expect(await readFile(join(target, path))).toEqual(await readFile(join(dataDir, path)))
})

let encryption: Promise<Buffer> | undefined
/** Encrypts once, because the key derivation takes most of the time of these tests. */
const encryptedBackup = (): Promise<Buffer> =>
  (encryption ??= (async () => {
    await using folder = await dataFolder()
    await writeFile(join(folder.dataDir, 'random'), randomBytes(300_000))
    await writeBackup(folder.dataDir, folder.file, passphrase)
    return await readFile(folder.file)
  })())

const headerBytes = 62
const chunk = 65_552
test.for(
  Object.entries<[change: (bytes: Buffer) => Buffer, given: string | undefined, message: RegExp]>({
    'a wrong passphrase': [(bytes) => bytes, `${passphrase}!`, /passphrase is wrong/],
    'no passphrase': [(bytes) => bytes, undefined, /is encrypted\. Set PLAT_BACKUP_PASSPHRASE_FILE/],
    'a passphrase for a plain backup': [(bytes) => gzipSync(bytes), passphrase, /is not encrypted/],
    'another salt': [(bytes) => bytes.fill(0, 40, 50), passphrase, /passphrase is wrong/],
    'a changed byte': [(bytes) => bytes.fill(1, chunk * 2, chunk * 2 + 2), passphrase, /changed or cut off/],
    'no last chunk': [(bytes) => bytes.subarray(0, headerBytes + chunk * 2), passphrase, /changed or cut off/],
    'half of the last chunk': [(bytes) => bytes.subarray(0, -100), passphrase, /changed or cut off/],
    'only its header': [(bytes) => bytes.subarray(0, headerBytes), passphrase, /passphrase is wrong, or the backup/],
    'a repeated chunk': [
      (bytes) => Buffer.concat([bytes.subarray(0, headerBytes + chunk), bytes.subarray(headerBytes)]),
      passphrase,
      /changed or cut off/,
    ],
    'a byte after its end': [(bytes) => Buffer.concat([bytes, Buffer.alloc(1)]), passphrase, /changed or cut off/],
  }),
)('restores nothing from an encrypted backup with %s', async ([, [change, given, message]]) => {
  await using folder = await dataFolder()
  await writeFile(folder.file, change(Buffer.from(await encryptedBackup())))
  await expect(restoreBackup(folder.file, folder.target, given)).rejects.toThrow(message)
  expect(await folder.others()).toEqual([])
})

test('a missing or short passphrase is explained', async () => {
  await using folder = await dataFolder()
  const path = join(folder.path, 'passphrase')
  await expect(readPassphrase(path)).rejects.toThrow(/cannot be read from .*PLAT_BACKUP_PASSPHRASE_FILE/)
  await writeFile(path, 'short\n')
  await expect(readPassphrase(path)).rejects.toThrow('must have at least 12 characters')
  await writeFile(path, `${passphrase}\r\n`)
  expect(await readPassphrase(path)).toBe(passphrase)
})
