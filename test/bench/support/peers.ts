import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'

const root = join(import.meta.dirname, '../../..')
const isInstalled = existsSync(join(import.meta.dirname, '../peers/node_modules'))

/** Frameworks that the platform is compared with; none before `npm install --prefix test/bench/peers`. */
export const peerNames = isInstalled ? (['fastify', 'express'] as const) : []
export type Peer = (typeof peerNames)[number]

export const peerModule = (name: Peer): string => `dist/bench/${name}.mjs`

export async function buildPeers(): Promise<void> {
  for (const name of peerNames) await bundleBare(`export * from '../peers/${name}.ts'`, name)
}

/**
 * Bundles a program without the platform's build settings. `program` is source code, whose imports are relative to the
 * folder `baseline`.
 */
export async function bundleBare(program: string, name: string): Promise<{ path: string; bytes: number }> {
  const path = join(root, `dist/bench/${name}.mjs`)
  const { outputFiles } = await build({
    stdin: { contents: program, resolveDir: join(import.meta.dirname, '../baseline'), loader: 'ts' },
    write: false,
    bundle: true,
    minify: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    mainFields: ['module', 'main'],
    banner: {
      js: `import { createRequire as requireOfBundle } from 'node:module'; const require = requireOfBundle(import.meta.url);`,
    },
    legalComments: 'none',
  })
  const contents = outputFiles[0]?.contents ?? Buffer.of()
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, contents)
  return { path, bytes: contents.length }
}
