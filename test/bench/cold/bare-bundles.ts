import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, type BuildOptions } from 'esbuild'
import type { Peer } from '../support/peers.ts'
import type { BuiltBundle } from './bundles.ts'

const root = join(import.meta.dirname, '../../..')

/** A bare handler as anybody would bundle it; `program` is its text, beside the files of the floor. */
export const buildFloor = (name: string, program: string): Promise<BuiltBundle> =>
  buildBare(name, { stdin: { contents: program, resolveDir: 'test/bench/floor', loader: 'ts' } })

/** A peer as its users would bundle it. */
export const buildPeer = (name: Peer): Promise<BuiltBundle> =>
  buildBare(`peer: ${name}`, { entryPoints: [`test/bench/peers/${name}.ts`] })

async function buildBare(name: string, input: BuildOptions): Promise<BuiltBundle> {
  const path = join(root, `dist/bench/${name.replaceAll(/\W+/g, '-')}.mjs`)
  const { outputFiles, metafile } = await build({
    ...input,
    absWorkingDir: root,
    outfile: path,
    write: false,
    bundle: true,
    minify: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    mainFields: ['module', 'main'],
    banner: {
      js: `import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);`,
    },
    metafile: true,
    legalComments: 'none',
  })
  const [{ contents } = { contents: Buffer.of() }] = outputFiles
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, contents)
  const sources = Object.keys(metafile.inputs)
  return { name, path, bytes: contents.length, gzipBytes: gzipSync(contents).length, lateBytes: 0, sources }
}
