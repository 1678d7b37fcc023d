/** `npm run package`: writes the platform with its built files to a tarball, so that its users need no build tools. */
import { createWriteStream } from 'node:fs'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { assetFiles, buildAssets, packageMarker } from '@platform/local/assets'
import { parseCommandLine } from '@platform/local/command-line'
import { build } from 'esbuild'
import { pack } from 'tar-stream'
import { report, root, sources } from './source.ts'

const dist = join(root, 'dist')

/** The one-machine platform and `plat`; of the portal only its package.json, which the lockfile requires. */
const includedPaths =
  /^(package(-lock)?\.json|(README|CHANGELOG|SECURITY)\.md|docs\/|functions\/|packages\/(?!portal\/)|packages\/portal\/package\.json|scripts\/(rotate-keys|reset-password|invoke-bootstrap)\.ts)/

/** The npm scripts that the archive keeps. They need no development packages. */
const commands = 'start demo:clean admin-token registry-password rotate-keys reset-password backup restore'.split(' ')

/** A fixed time, so that archives of the same files are equal. */
const mtime = new Date('2000-01-01T00:00:00Z')

function withoutDevelopmentCommands(description: string): string {
  const { scripts, ...rest } = JSON.parse(description)
  const keptScripts = Object.fromEntries(commands.map((name) => [name, scripts[name]]))
  return `${JSON.stringify({ ...rest, scripts: keptScripts }, null, 2)}\n`
}

/** Bundles the files of the SQS emulator that the platform loads, under the same names. */
async function bundleQueues(): Promise<Map<string, Uint8Array>> {
  const folder = join(root, 'node_modules/fauxqs/dist')
  const names = ['sqs/sqsStore.js', 'persistence.js', 'common/errors.js', 'sqs/sqsTypes.js']
  const actions = await readdir(join(folder, 'sqs/actions'))
  const { outputFiles } = await build({
    absWorkingDir: folder,
    entryPoints: [...names, ...actions.filter((name) => name.endsWith('.js')).map((name) => `sqs/actions/${name}`)],
    outbase: folder,
    outdir: join(dist, 'fauxqs'),
    write: false,
    bundle: true,
    // The files share the class of the store.
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
  })
  return new Map(outputFiles.map(({ path, contents }) => [relative(root, path), contents]))
}

async function readContents(): Promise<Map<string, string | Uint8Array>> {
  await buildAssets(dist)
  const paths = [
    ...sources().flatMap(({ path }) => (includedPaths.test(path) ? [path] : [])),
    ...assetFiles.map((file) => `dist/${file}`),
  ]
  const files = paths.map(async (path) => [path, await readFile(join(root, path))] as const)
  const contents = new Map<string, string | Uint8Array>([...(await Promise.all(files)), ...(await bundleQueues())])
  contents.set('package.json', withoutDevelopmentCommands(await readFile(join(root, 'package.json'), 'utf8')))
  contents.set('dist/fauxqs/LICENSE', await readFile(join(root, 'node_modules/fauxqs/LICENSE')))
  contents.set(`dist/${packageMarker}`, '')
  return contents
}

/** Writes the tarball and returns its path. Removes an incomplete tarball after an error. */
export async function writePackage(folder: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const name = `platform-${version}`
  const file = join(folder, `${name}.tgz`)
  const archive = pack()
  await mkdir(folder, { recursive: true })
  const contents = await readContents()
  for (const path of [...contents.keys()].toSorted()) {
    archive.entry({ name: `${name}/${path}`, mtime }, Buffer.from(contents.get(path) ?? ''))
  }
  archive.finalize()
  await pipeline(archive, createGzip(), createWriteStream(file)).catch(async (error: unknown) => {
    await rm(file, { force: true })
    throw error
  })
  return file
}

if (import.meta.main) {
  parseCommandLine(
    `npm run package

Writes the platform with its built files to dist/platform-VERSION.tgz.`,
    {},
  )
  const file = await writePackage(dist).catch((error: Error) => report([error.message]))
  if (file !== undefined) console.log(`${file}\nUnpack it, and in its folder run: npm ci --omit=dev && npm start`)
}
