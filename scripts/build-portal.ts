import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { packFiles, type PortalFile } from '@platform/http/portal/pack'
import { hashedFolder } from '@platform/http/portal/serve'
import { build } from 'vite'
import { root } from './source.ts'

const portalDir = join(root, 'packages/portal')

/** Content types by extension; an unknown extension fails the build. */
const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
}

const isCompressed = (path: string): boolean => ['.png', '.webp', '.woff2'].includes(extname(path))

/** Lambda limits a response to 6 MB, and base64 adds a third. */
const maxBytes = 4 * 1024 * 1024

const gzipAsync = promisify(gzip)
const brotliAsync = promisify(brotliCompress)

/** Builds the portal into one file of compressed responses. The same sources give the same bytes. */
export async function buildPortal(outfile: string): Promise<void> {
  // React checks NODE_ENV, not the mode of Vite. Builds in tests would otherwise contain the larger development build.
  process.env['NODE_ENV'] = 'production'
  const folder = await mkdtemp(join(tmpdir(), 'portal-'))
  try {
    await build({
      root: portalDir,
      configFile: join(portalDir, 'vite.config.ts'),
      configLoader: 'native',
      mode: 'production',
      logLevel: 'warn',
      build: { outDir: folder, emptyOutDir: true },
    })
    const { '/index.html': shell, ...files } = await filesIn(folder)
    if (shell === undefined) throw new Error('The portal build has no index.html.')
    await mkdir(dirname(outfile), { recursive: true })
    await writeFile(outfile, packFiles({ shell, files: new Map(Object.entries(files)) }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function filesIn(folder: string): Promise<Record<string, PortalFile>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length))
    .toSorted()
  const files = paths.map(async (path) => [path, await fileOf(path, await readFile(folder + path))] as const)
  return Object.fromEntries(await Promise.all(files))
}

async function fileOf(path: string, identity: Buffer): Promise<PortalFile> {
  const contentType = contentTypes[extname(path)]
  if (contentType === undefined)
    throw new Error(`No content type for ${path}: add its extension to scripts/build-portal.ts.`)
  if (identity.length > maxBytes) throw new Error(`${path} exceeds the size limit of a response.`)
  return {
    contentType,
    isHashed: path.startsWith(hashedFolder),
    tag: createHash('sha256').update(identity).digest('hex').slice(0, 32),
    bodies: { identity, ...(!isCompressed(path) && (await compress(identity))) },
  }
}

/** Omits an encoding that is not smaller than the content. */
async function compress(content: Buffer): Promise<{ br?: Buffer; gzip?: Buffer }> {
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length }
  const [br, gz] = await Promise.all([brotliAsync(content, { params }), gzipAsync(content, { level: 9 })])
  return { ...(br.length < content.length && { br }), ...(gz.length < content.length && { gzip: gz }) }
}

// Usage: `node scripts/build-portal.ts [file]`
if (import.meta.main) await buildPortal(process.argv[2] ?? join(root, 'dist/portal.pack'))
