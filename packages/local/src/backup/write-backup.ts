import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { access, lstat, open, readdir, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { version } from '@platform/core/lib/version'
import { type Pack, pack } from 'tar-stream'
import { claimDataFolder } from '../data-folder.ts'
import { syncFolder } from '../emulators/secrets/durable-file.ts'
import { encryptWith } from './encryption.ts'
import { explainFileError } from './file-error.ts'
import { BackupError, dataPrefix, isPlainPath, type Manifest, manifestName, type SavedFile } from './manifest.ts'

/** Files of a single run, logs, and unpacked images, which the platform can fetch again. */
const excludedNames = new Set([
  'lock.sqlite',
  'lock.sqlite-journal',
  'runtime.json',
  'runtime.json.draft',
  'modules',
  'assets',
  'logs',
])

/**
 * Writes all state of a data folder to a file that only its owner may read. The file appears only when it is complete,
 * and is encrypted if there is a passphrase. Throws `BackupError`, or `StartError` if the folder cannot be claimed, for
 * example because a platform uses it.
 */
export async function writeBackup(dataDir: string, target: string, passphrase?: string): Promise<Manifest> {
  await requireValidPaths(dataDir, target)
  // Prevents a platform from starting on the folder during the backup.
  using claim = new DisposableStack()
  claim.use(await claimDataFolder(dataDir))
  // The name is unique, because a killed backup may have left its draft.
  const draft = `${target}.${randomUUID()}.draft`
  try {
    const manifest = await writeArchive(dataDir, draft, passphrase)
    await rename(draft, target)
    syncFolder(dirname(target))
    return manifest
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined)
    throw explainFileError(error, target)
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

async function requireValidPaths(dataDir: string, target: string): Promise<void> {
  if (!(await exists(join(dataDir, 'dynamodb'))))
    throw new BackupError(`The folder ${dataDir} contains no data of a platform.`)
  if (await exists(target)) throw new BackupError(`${target} already exists. Choose another name.`)
  if (!(await exists(dirname(target)))) throw new BackupError(`The folder ${dirname(target)} does not exist.`)
  const [dataPath, targetFolder] = await Promise.all([realpath(dataDir), realpath(dirname(target))])
  const relativePath = relative(dataPath, join(targetFolder, basename(target)))
  if (relativePath !== '..' && !relativePath.startsWith(`..${sep}`))
    throw new BackupError('The backup must be outside the data folder.')
}

async function writeArchive(dataDir: string, draft: string, passphrase: string | undefined): Promise<Manifest> {
  const archive = pack()
  const file = createWriteStream(draft, { flags: 'wx', mode: 0o600 })
  // The level is low, because most files are already compressed.
  const gzip = createGzip({ level: 1 })
  const pipelineEnd =
    passphrase === undefined ? pipeline(archive, gzip, file) : pipeline(archive, gzip, encryptWith(passphrase), file)
  const [manifest] = await Promise.all([addAll(archive, dataDir).catch(destroyOnError(archive)), pipelineEnd])
  await using handle = await open(draft)
  await handle.sync()
  return manifest
}

/** Ends the pipeline, which would otherwise wait forever. */
const destroyOnError = (archive: Pack) => (error: Error) => {
  archive.destroy(error)
  throw error
}

async function addAll(archive: Pack, dataDir: string): Promise<Manifest> {
  const files: SavedFile[] = []
  for (const path of await filesBelow(dataDir)) files.push(await addFile(archive, dataDir, path))
  const manifest: Manifest = {
    format: 1,
    createdAt: new Date().toISOString(),
    platformVersion: version,
    nodeVersion: process.versions.node,
    files,
  }
  archive.entry({ name: manifestName, mode: 0o600 }, JSON.stringify(manifest))
  archive.finalize()
  return manifest
}

async function filesBelow(dataDir: string, folder = ''): Promise<string[]> {
  const entries = await readdir(join(dataDir, folder), { withFileTypes: true })
  const paths = entries
    .filter(({ name }) => folder !== '' || !excludedNames.has(name))
    .map(async (entry) => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (entry.isDirectory()) return filesBelow(dataDir, path)
      if (entry.isFile() && isPlainPath(path)) return [path]
      throw new BackupError(`${join(dataDir, path)} is not a regular file. Move it, and try again.`)
    })
  return (await Promise.all(paths)).flat().toSorted()
}

async function addFile(archive: Pack, dataDir: string, path: string): Promise<SavedFile> {
  const source = join(dataDir, path)
  const { size: bytes, mtime } = await lstat(source)
  const hash = createHash('sha256')
  const entry = archive.entry({ name: `${dataPrefix}${path}`, size: bytes, mode: 0o600, mtime })
  const content = createReadStream(source)
  content.on('data', (chunk) => hash.update(chunk))
  await pipeline(content, entry)
  return { path, bytes, sha256: hash.digest('hex') }
}
