import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const all = ['fastify', 'express'] as const
export type Peer = (typeof all)[number]

/** The packages of the peers, and autocannon: `npm ci --prefix test/bench/peers` installs them. */
export const peerPackages = join(import.meta.dirname, '../peers/node_modules')

/** Frameworks in which the same two operations are written; none where their packages are not installed. */
export const peerNames: readonly Peer[] = existsSync(peerPackages) ? all : []

const root = join(import.meta.dirname, '../../..')
const outdir = 'dist/bench/peers'

/** The built module of a peer. */
export const peerModule = (name: Peer): string => `${outdir}/${name}.mjs`

export async function buildPeers(): Promise<void> {
  await build({
    absWorkingDir: root,
    entryPoints: peerNames.map((name) => `test/bench/peers/${name}.ts`),
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    mainFields: ['module', 'main'],
    banner: {
      js: `import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);`,
    },
  })
}
