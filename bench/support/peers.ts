import { join } from 'node:path'
import { build } from 'esbuild'

/** Frameworks in which others write the same two operations. */
export const peerNames = ['fastify', 'express', 'nest'] as const
export type Peer = (typeof peerNames)[number]

/** What is told about the peers wherever they appear. */
export const peersNote =
  'The peers are written as their users write them: fastify 5 with @fastify/aws-lambda and its JSON schemas, express 5 and NestJS 12 (on express) with serverless-http and zod; all verify the token with jose at each request, ask the store by lib-dynamodb, and write no log.'

const root = join(import.meta.dirname, '../..')
const outdir = 'dist/bench/peers'

/** Where a warm process finds a peer that was built. */
export const peerModule = (name: Peer): string => `${outdir}/${name}.mjs`

/** Builds all peers for warm processes: decorators as JavaScript, packages as they are installed. */
export async function buildPeers(): Promise<void> {
  await build({
    absWorkingDir: root,
    entryPoints: peerNames.map((name) => `bench/peers/${name}.ts`),
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    packages: 'external',
    platform: 'node',
    target: 'node24',
    format: 'esm',
  })
}
