import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { packFiles, type PortalFile } from '@platform/http/portal/pack'
import { hashedFolder } from '@platform/http/portal/paths'
import { build } from 'vite'
import { root } from './source.ts'

const portalDir = join(root, 'packages/portal')

/** What a browser has to be told of a file; one of another kind ends the build. */
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

/** Of what is compressed already nothing is left to be gained. */
const isDense = (path: string): boolean => ['.png', '.webp', '.woff2'].includes(extname(path))

/** A function can answer 6 MB, which grow by a third on the way. */
const maximumBytes = 4 * 1024 * 1024

const inGzip = promisify(gzip)
const inBrotli = promisify(brotliCompress)

/** Builds the portal into one file, compressed beforehand; the same sources make the same file. */
export async function buildPortal(outfile: string): Promise<void> {
  // It counts for more than the mode does: from within a test React would be built as for its developers, twice as large.
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
    if (shell === undefined) throw new Error('The portal has no index.html.')
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
  if (contentType === undefined) throw new Error(`Nothing says what type ${path} has: see scripts/build-portal.ts.`)
  if (identity.length > maximumBytes) throw new Error(`${path} is too large to be handed out.`)
  return {
    contentType,
    isHashed: path.startsWith(hashedFolder),
    tag: createHash('sha256').update(identity).digest('hex').slice(0, 32),
    bodies: { identity, ...(!isDense(path) && (await compressed(identity))) },
  }
}

/** In each encoding that makes it shorter. */
async function compressed(content: Buffer): Promise<{ br?: Buffer; gzip?: Buffer }> {
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length }
  const [br, gz] = await Promise.all([inBrotli(content, { params }), inGzip(content, { level: 9 })])
  return { ...(br.length < content.length && { br }), ...(gz.length < content.length && { gzip: gz }) }
}

// `node build-portal.ts <file>`
if (import.meta.main) await buildPortal(process.argv[2] ?? join(root, 'dist/portal.pack'))
