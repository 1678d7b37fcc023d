import { build } from 'esbuild'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { relayVersion } from '../packages/relay/src/version.ts'

const root = new URL('../', import.meta.url)

/** Bundles the relay into one file that any Node from 20 on runs by itself (D22). */
export async function buildRelay(outfile: string): Promise<void> {
  const { license }: { license: string } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))
  await build({
    entryPoints: [fileURLToPath(new URL('packages/relay/src/main.ts', root))],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    charset: 'utf8',
    banner: {
      js: `#!/usr/bin/env node\n// platform-relay ${relayVersion} | license: ${license} | needs Node 20 or later`,
    },
  })
}

if (import.meta.main) await buildRelay(fileURLToPath(new URL('dist/relay.mjs', root)))
